"""Expressions: what a statement computes, and integers of which some parts have only names.

Everything is a `Node` with parts, so that one `walk` and one `rewrite` serve all. Index expressions, sizes and ranges become
polynomials in the names of sizes, integer parameters and index variables. What is no polynomial (a quotient, the least of two
sizes, an index that data decides) is an `Atom`, a variable with something inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Union


@dataclass(frozen=True, slots=True)
class Node:
    """An expression; `at` is where it begins in the text."""

    at: int = field(default=-1, compare=False, kw_only=True)

    @property
    def parts(self) -> tuple[Node, ...]:
        """The expressions right below."""
        return ()

    def with_parts(self, parts: Iterable[Node]) -> Node:
        """The same of other parts, in their order."""
        return self


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A literal; whether it is a float, an int or a bool is its Python type's matter."""

    value: float


@dataclass(frozen=True, slots=True)
class Name(Node):
    """An index variable, a size, or an integer parameter."""

    name: str


@dataclass(frozen=True, slots=True)
class Size(Node):
    """`A.0`: the size of a dimension."""

    tensor: str
    dim: int


@dataclass(frozen=True, slots=True)
class Read(Node):
    """An element of a tensor, or a given number; `other` is its value where it is outside.

    Once sizes are known, `bounds` has the indexes that may leave, each with the size it must stay below, and `other` is None
    if there are none.
    """

    tensor: str
    indexes: tuple[Node, ...] = ()
    other: Node | None = None
    bounds: tuple[tuple[Poly, int], ...] = ()

    @property
    def parts(self) -> tuple[Node, ...]:
        return (*self.indexes, *(p for p, _ in self.bounds), *(() if self.other is None else (self.other,)))

    def with_parts(self, parts: Iterable[Node]) -> Read:
        left = iter(parts)
        indexes = tuple(next(left) for _ in self.indexes)
        bounds = tuple((poly(next(left)), size) for _, size in self.bounds)
        return replace(self, indexes=indexes, bounds=bounds, other=next(left, None))

    @property
    def polys(self) -> tuple[Poly, ...]:
        """The indexes as polynomials."""
        return tuple(map(poly, self.indexes))


@dataclass(frozen=True, slots=True)
class Apply(Node):
    """An operator or a function by its name: "+", "neg", "?", "exp"; "cast float32" is a cast."""

    function: str
    args: tuple[Node, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        return self.args

    def with_parts(self, parts: Iterable[Node]) -> Apply:
        return replace(self, args=tuple(parts))


COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
TRUTHS = (*COMPARISONS, "&&", "||", "not")


def walk(node: Node) -> Iterator[Node]:
    """The expression and all below it."""
    yield node
    for part in node.parts:
        yield from walk(part)


def reads(node: Node) -> list[Read]:
    """All reads in it, each once."""
    return list(dict.fromkeys(x for x in walk(node) if isinstance(x, Read)))


def rewrite(node: Node, change: Callable[[Node], Node]) -> Node:
    """The expression with `change` made of each part, those below first."""
    return change(node.with_parts([rewrite(x, change) for x in node.parts]) if node.parts else node)


def replaced(node: Node, given: Mapping[str, Poly]) -> Node:
    """With polynomials for names."""
    match node:
        case Name(name):
            return given[name].node() if name in given else node
        case Poly():
            return node.replaced(given)
    return node.with_parts([replaced(x, given) for x in node.parts])


def names(node: Node) -> set[str]:
    """The names that stand for numbers in it."""
    own = {node.name} if isinstance(node, Name) else node.variables() if isinstance(node, Poly) else set[str]()
    return own.union(*map(names, node.parts))


def factors(node: Node) -> list[Node]:
    """What is multiplied."""
    match node:
        case Apply("*", args):
            return [f for x in args for f in factors(x)]
        case Apply("neg", (x,)):
            return [Number(-1), *factors(x)]
        case Apply("/", (x, y)):
            return [*factors(x), Apply("/", (Number(1.0), y))]
    return [node]


def joined(function: str, nodes: Iterable[Node]) -> Node | None:
    """Several by an operator of two; None of none."""
    result: Node | None = None
    for node in nodes:
        result = node if result is None else Apply(function, (result, node))
    return result


def conditional(conditions: Iterable[Node], node: Node) -> Node:
    """An expression where all conditions hold, else zero."""
    condition = joined("&&", conditions)
    return node if condition is None else Apply("?", (condition, node, Number(0)))


@dataclass(frozen=True, slots=True)
class Atom:
    """`kind` is "/", "%", "min" or "max" of polynomials, or "value", an expression that is no index."""

    kind: str
    parts: tuple[Poly, ...] = ()
    node: Node | None = None

    def replaced(self, given: Mapping[str, Poly]) -> Poly:
        """With polynomials for names."""
        if self.node is not None:
            return Poly.of(Atom("value", (), replaced(self.node, given)))
        return combine(self.kind, *(p.replaced(given) for p in self.parts))

    def interval(self, ranges: Mapping[str, Interval]) -> Interval:
        """The least and the greatest value."""
        ends = [interval(p, ranges) for p in self.parts]
        if self.kind in ("min", "max"):
            pick = min if self.kind == "min" else max
            return pick(e[0] for e in ends), pick(e[1] for e in ends)
        if self.kind in "/%" and ends[1][0] == ends[1][1] > 0 and all(map(math.isfinite, ends[0])):
            low, high, by = int(ends[0][0]), int(ends[0][1]), int(ends[1][0])
            if self.kind == "/":
                return low // by, high // by
            return (low % by, high % by) if low // by == high // by else (0, by - 1)
        return -math.inf, math.inf


Variable = Union[str, Atom]  # noqa: UP007 - at run time, before Python 3.10's own would know Atom
Monomial = tuple[Variable, ...]
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Poly(Node):
    """A sum of products of variables, each with its factor. Its parts are the expressions in it that are no index."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @classmethod
    def of(cls, x: int | str | Atom) -> Poly:
        """A number, or a variable."""
        if isinstance(x, int):
            return cls((((), x),)) if x else cls()
        return cls((((x,), 1),))

    @classmethod
    def _from(cls, terms: Mapping[Monomial, int]) -> Poly:
        return cls(
            tuple(sorted(((m, f) for m, f in terms.items() if f), key=lambda term: (len(term[0]), str(term[0]))))
        )

    def __add__(self, other: Poly | int) -> Poly:
        terms = dict(self.terms)
        for monomial, factor in _poly(other).terms:
            terms[monomial] = terms.get(monomial, 0) + factor
        return Poly._from(terms)

    def __neg__(self) -> Poly:
        return self * -1

    def __sub__(self, other: Poly | int) -> Poly:
        return self + _poly(other) * -1

    def __mul__(self, other: Poly | int) -> Poly:
        terms: dict[Monomial, int] = {}
        for a, x in self.terms:
            for b, y in _poly(other).terms:
                monomial = tuple(sorted((*a, *b), key=str))
                terms[monomial] = terms.get(monomial, 0) + x * y
        return Poly._from(terms)

    @property
    def number(self) -> int | None:
        """Its value, where no variable is left."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    @property
    def _atoms(self) -> Iterator[Atom]:
        return (v for monomial, _ in self.terms for v in monomial if isinstance(v, Atom))

    def variables(self) -> set[str]:
        """Every name in it, at any depth, but for those in expressions that are no index."""
        own = {v for monomial, _ in self.terms for v in monomial if isinstance(v, str)}
        return own.union(*(p.variables() for atom in self._atoms for p in atom.parts))

    @property
    def parts(self) -> tuple[Node, ...]:
        found: list[Node] = []
        for atom in self._atoms:
            found += [x for p in atom.parts for x in p.parts] if atom.node is None else [atom.node]
        return tuple(found)

    def with_parts(self, parts: Iterable[Node]) -> Poly:
        known = dict(zip(self.parts, parts, strict=True))
        return self._with(lambda v: v if isinstance(v, str) else _atom_with(v, known)) if known else self

    def _with(self, change: Callable[[Variable], Variable | Poly]) -> Poly:
        result = Poly()
        for monomial, factor in self.terms:
            term = Poly.of(factor)
            for v in map(change, monomial):
                term *= v if isinstance(v, Poly) else Poly.of(v)
            result += term
        return result

    def replaced(self, given: Mapping[str, Poly]) -> Poly:
        """With polynomials for names."""
        return self._with(lambda v: given.get(v, v) if isinstance(v, str) else v.replaced(given))

    def linear(self, name: str) -> tuple[Poly, Poly] | None:
        """`factor` and `rest` of `factor * name + rest`, neither with the name in it; None if it is not of that form."""
        factor, rest = Poly(), Poly()
        for monomial, number in self.terms:
            if name in monomial:
                left = list(monomial)
                left.remove(name)
                factor += Poly(((tuple(left), number),))
            else:
                rest += Poly(((monomial, number),))
        return None if name in factor.variables() | rest.variables() else (factor, rest)

    def line(self) -> tuple[int, dict[str, int]] | None:
        """A start, and a number for each variable that it is multiplied with; None if it is of another kind."""
        start, steps = 0, {}
        for monomial, factor in self.terms:
            if not monomial:
                start = factor
            elif len(monomial) == 1 and isinstance(monomial[0], str):
                steps[monomial[0]] = factor
            else:
                return None
        return start, steps

    def node(self) -> Node:
        """As it is written: what is added, what is taken away, and a number last unless it must lead."""
        led = any(factor > 0 and monomial for monomial, factor in self.terms)
        result: Node | None = None
        for monomial, factor in sorted(self.terms, key=lambda term: (not term[0] and led, term[1] < 0)):
            size = abs(factor)
            parts = [Name(v) if isinstance(v, str) else _atom_node(v) for v in monomial]
            term = joined("*", [Number(size), *parts] if size != 1 or not parts else parts)
            assert term is not None
            if result is None:
                result = term if factor > 0 else Number(-size) if isinstance(term, Number) else Apply("neg", (term,))
            else:
                result = Apply("+" if factor > 0 else "-", (result, term))
        return Number(0) if result is None else result


def _poly(x: Poly | int) -> Poly:
    return x if isinstance(x, Poly) else Poly.of(x)


def _atom_with(atom: Atom, known: Mapping[Node, Node]) -> Variable | Poly:
    if atom.node is not None:
        return Atom("value", (), known[atom.node])
    return combine(atom.kind, *(p.with_parts([known[x] for x in p.parts]) for p in atom.parts))


def _atom_node(atom: Atom) -> Node:
    if atom.node is not None:
        return atom.node
    kind = "//" if atom.kind == "/" else atom.kind  # it may come to stand among values, where / is a true division
    return Apply(kind, tuple(p.node() for p in atom.parts))


def combine(kind: str, *parts: Poly) -> Poly:
    """Quotient and rest as Python has them, the least and the most of several."""
    if kind in ("min", "max"):
        distinct = tuple(dict.fromkeys(parts))
        known = [p.number for p in distinct if p.number is not None]
        if len(distinct) == 1:
            return parts[0]
        return Poly.of((min if kind == "min" else max)(known) if len(known) == len(distinct) else Atom(kind, distinct))
    a, b = parts
    by = b.number
    if by and all(f % by == 0 for _, f in a.terms):
        return Poly(tuple((m, f // by) for m, f in a.terms)) if kind == "/" else Poly()
    if by and a.number is not None:
        return Poly.of(a.number // by if kind == "/" else a.number % by)
    return Poly.of(1) if kind == "/" and a == b else Poly.of(Atom(kind, (a, b)))


def poly(node: Node) -> Poly:
    """An index expression; what is none of integers by itself becomes an atom."""
    match node:
        case Poly():
            return node
        case Number(int(value)):
            return Poly.of(int(value))
        case Name(name):
            return Poly.of(name)
        case Apply("neg", (x,)):
            return -poly(x)
        case Apply("+", (x, y)):
            return poly(x) + poly(y)
        case Apply("-", (x, y)):
            return poly(x) - poly(y)
        case Apply("*", (x, y)):
            return poly(x) * poly(y)
        case Apply("/" | "//" | "%" | "min" | "max" as kind, (x, y)):
            return combine("/" if kind == "//" else kind, poly(x), poly(y))
    return Poly.of(Atom("value", (), node))


def interval(p: Poly, ranges: Mapping[str, Interval]) -> Interval:
    """The least and the greatest value over ranges with both ends included; infinite where that is not known."""
    low = high = 0.0
    for monomial, factor in p.terms:
        a = b = float(factor)
        for v in monomial:
            ends = ranges.get(v, (-math.inf, math.inf)) if isinstance(v, str) else v.interval(ranges)
            products = [x * y if x and y else 0.0 for x in (a, b) for y in ends]
            a, b = min(products), max(products)
        low, high = low + a, high + b
    return low, high


def truth(node: Node) -> bool | None:
    """Whether a condition of numbers alone holds; None where it is not one of numbers alone."""
    match node:
        case Number(value):
            return bool(value)
        case Apply(op, (left, right)) if op in COMPARISONS:
            if any(isinstance(x, Apply) and x.function == "/" for x in walk(node)):
                return None  # a true division gives no integer
            d = (poly(left) - poly(right)).number
            if d is not None:
                return {"==": d == 0, "!=": d != 0, "<": d < 0, "<=": d <= 0, ">": d > 0, ">=": d >= 0}[op]
        case Apply("&&" | "||" as op, args):
            known, decisive = [truth(x) for x in args], op == "||"
            return decisive if decisive in known else None if None in known else not decisive
    return None
