"""Expressions: what a statement computes, and the integers in it as polynomials.

Everything is a `Node` with parts, so that one `walk` and one `rewrite` serve all. Indexes, sizes and ranges are polynomials in
the names of sizes, integer parameters and index variables, and in what is no polynomial by itself (a quotient, the least of two
sizes, an index that data decides).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Node:
    """An expression; `at` is where it begins in the text."""

    at: int = field(default=-1, compare=False, repr=False, kw_only=True)

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
class Read(Node):
    """An element of a tensor, or a given number; `other` is its value where it is outside.

    Once sizes are known, `bounds` has the indexes that may leave, each with the size it must stay below, and `other` is None
    if there are none.
    """

    tensor: str
    indexes: tuple[Poly, ...] = ()
    other: Node | None = None
    bounds: tuple[tuple[Poly, int], ...] = ()

    @property
    def parts(self) -> tuple[Node, ...]:
        return (*self.indexes, *(p for p, _ in self.bounds), *(() if self.other is None else (self.other,)))

    def with_parts(self, parts: Iterable[Node]) -> Read:
        left = iter(parts)
        indexes = tuple(poly(next(left)) for _ in self.indexes)
        bounds = tuple((poly(next(left)), size) for _, size in self.bounds)
        return replace(self, indexes=indexes, bounds=bounds, other=next(left, None))


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


Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Poly(Node):
    """A sum of products, each with its factor."""

    terms: tuple[tuple[tuple[Node, ...], int], ...] = ()

    @classmethod
    def of(cls, x: int | str | Node) -> Poly:
        """A number, or a variable."""
        if isinstance(x, int):
            return cls((((), x),)) if x else cls()
        return cls((((Name(x) if isinstance(x, str) else x,), 1),))

    @classmethod
    def _sum(cls, terms: Iterable[tuple[tuple[Node, ...], int]]) -> Poly:
        total: dict[tuple[Node, ...], int] = {}
        for monomial, factor in terms:
            total[monomial] = total.get(monomial, 0) + factor
        return cls(
            tuple(sorted(((m, f) for m, f in total.items() if f), key=lambda t: (len(t[0]), [*map(_key, t[0])])))
        )

    @property
    def parts(self) -> tuple[Node, ...]:
        return tuple(v for monomial, _ in self.terms for v in monomial)

    def with_parts(self, parts: Iterable[Node]) -> Poly:
        left = iter(parts)
        result = Poly()
        for monomial, factor in self.terms:
            result += math.prod((poly(next(left)) for _ in monomial), start=Poly.of(factor))
        return result

    def __add__(self, other: Poly | int) -> Poly:
        return self._sum((*self.terms, *_poly(other).terms))

    def __neg__(self) -> Poly:
        return Poly(tuple((m, -f) for m, f in self.terms))

    def __sub__(self, other: Poly | int) -> Poly:
        return self + -_poly(other)

    def __mul__(self, other: Poly | int) -> Poly:
        pairs = ((a, x, b, y) for a, x in self.terms for b, y in _poly(other).terms)
        return self._sum((tuple(sorted((*a, *b), key=_key)), x * y) for a, x, b, y in pairs)

    @property
    def number(self) -> int | None:
        """Its value, where no variable is left."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    @property
    def name(self) -> str:
        """Its name, where it is one and no more; else ""."""
        match self.terms:
            case (((Name(name),), 1),):
                return name
        return ""

    @property
    def data(self) -> bool:
        """Whether anything in it is other than integer arithmetic of names."""
        return any(isinstance(x, Read) or (isinstance(x, Apply) and x.function not in _WHOLE) for x in walk(self))

    def replaced(self, given: Mapping[str, Poly]) -> Poly:
        """With polynomials for names."""
        if not any(given.get(v.name, v) != v if isinstance(v, Name) else True for v in self.parts):
            return self
        return self.with_parts(given.get(v.name, v) if isinstance(v, Name) else replaced(v, given) for v in self.parts)

    def linear(self, name: str) -> tuple[Poly, Poly] | None:
        """`factor` and `rest` of `factor * name + rest`, neither with the name in it; None if it is not of that form."""
        factor: list[tuple[tuple[Node, ...], int]] = []
        rest: list[tuple[tuple[Node, ...], int]] = []
        for monomial, number in self.terms:
            i = next((i for i, v in enumerate(monomial) if isinstance(v, Name) and v.name == name), None)
            if i is None:
                rest.append((monomial, number))
            else:
                factor.append(((*monomial[:i], *monomial[i + 1 :]), number))
        found = Poly._sum(factor), Poly._sum(rest)
        return None if name in names(found[0]) | names(found[1]) else found

    def line(self) -> tuple[int, dict[str, int]] | None:
        """A start, and a number for each variable that it is multiplied with; None if it is of another kind."""
        start, steps = 0, {}
        for monomial, factor in self.terms:
            match monomial:
                case ():
                    start = factor
                case (Name(name),):
                    steps[name] = factor
                case _:
                    return None
        return start, steps

    def node(self) -> Node:
        """As it is written: what is added, what is taken away, and a number last unless it must lead."""
        led = any(factor > 0 and monomial for monomial, factor in self.terms)
        result: Node | None = None
        for monomial, factor in sorted(self.terms, key=lambda term: (not term[0] and led, term[1] < 0)):
            size = abs(factor)
            term = joined("*", [Number(size), *monomial] if size != 1 or not monomial else monomial)
            assert term is not None
            if result is None:
                result = term if factor > 0 else Number(-size) if isinstance(term, Number) else Apply("neg", (term,))
            else:
                result = Apply("+" if factor > 0 else "-", (result, term))
        return Number(0) if result is None else result


_WHOLE = ("//", "%", "min", "max")
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


def _key(v: Node) -> str:
    """By which variables are in order: names first."""
    return v.name if isinstance(v, Name) else f"~{v!r}"


def _poly(x: Poly | int) -> Poly:
    return x if isinstance(x, Poly) else Poly.of(x)


def poly(node: Node) -> Poly:
    """An integer expression as a polynomial; its quotients round down."""
    match node:
        case Poly():
            return node
        case Number(int(value)):
            return Poly.of(int(value))
        case Apply("neg", (x,)):
            return -poly(x)
        case Apply("+", (x, y)):
            return poly(x) + poly(y)
        case Apply("-", (x, y)):
            return poly(x) - poly(y)
        case Apply("*", (x, y)):
            return poly(x) * poly(y)
        case Apply("/" | "//" | "%" | "min" | "max" as kind, args):
            return combine("//" if kind == "/" else kind, *map(poly, args))
    return Poly.of(node)


def combine(kind: str, *parts: Poly) -> Poly:
    """Quotient and rest as Python has them ("//" and "%"), the least and the most of several."""
    if kind in ("min", "max"):
        distinct, more = dict.fromkeys(parts), 1 if kind == "max" else -1
        left = tuple(p for p in distinct if not any(((q - p).number or 0) * more > 0 for q in distinct))
        return left[0] if len(left) == 1 else Poly.of(Apply(kind, left))
    a, b = parts
    by = b.number
    if by and all(f % by == 0 for _, f in a.terms):
        return Poly(tuple((m, f // by) for m, f in a.terms)) if kind == "//" else Poly()
    if by and a.number is not None:
        return Poly.of(a.number // by if kind == "//" else a.number % by)
    return Poly.of(1) if kind == "//" and a == b else Poly.of(Apply(kind, (a, b)))


def walk(node: Node) -> Iterator[Node]:
    """The expression and all below it."""
    yield node
    for part in node.parts:
        yield from walk(part)


def reads(node: Node) -> list[Read]:
    """All reads in it, each once."""
    return list(dict.fromkeys(x for x in walk(node) if isinstance(x, Read)))


def names(node: Node) -> set[str]:
    """The names that stand for numbers in it."""
    return {x.name for x in walk(node) if isinstance(x, Name)}


def rewrite(node: Node, change: Callable[[Node], Node]) -> Node:
    """The expression with `change` made of each part, those below first."""
    parts = node.parts
    made = [rewrite(x, change) for x in parts]
    same = all(a is b for a, b in zip(made, parts, strict=True))
    return change(node if same else node.with_parts(made))


def replaced(node: Node, given: Mapping[str, Poly]) -> Node:
    """With polynomials for names."""
    match node:
        case Name(name):
            return given[name].node() if name in given else node
        case Poly():
            return node.replaced(given)
    return node.with_parts([replaced(x, given) for x in node.parts])


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


def interval(node: Node, ranges: Mapping[str, Interval]) -> Interval:
    """The least and the greatest value of integers over ranges with both ends included; infinite where that is not known."""
    match node:
        case Name(name) if name in ranges:
            return ranges[name]
        case Poly(terms):
            low = high = 0.0
            for monomial, factor in terms:
                a = b = float(factor)
                for ends in (interval(v, ranges) for v in monomial):
                    products = [x * y if x and y else 0.0 for x in (a, b) for y in ends]
                    a, b = min(products), max(products)
                low, high = low + a, high + b
            return low, high
        case Apply("min" | "max" as kind, args):
            lows, highs = zip(*(interval(x, ranges) for x in args), strict=True)
            return (min(lows), min(highs)) if kind == "min" else (max(lows), max(highs))
        case Apply("//" | "%" as kind, args):
            (low, high), (by, same) = (interval(x, ranges) for x in args)
            if by > 0 and math.isfinite(low) and math.isfinite(high):
                found = [x // y for x in (low, high) for y in (by, same)]
                if kind == "//":
                    return min(found), max(found)
                whole = by * found[0]
                return (low - whole, high - whole) if by == same and len({*found}) == 1 else (0, same - 1)
    return -math.inf, math.inf


def truth(node: Node) -> bool | None:
    """Whether a condition of numbers alone holds; None where it is not one of numbers alone."""
    match node:
        case Number(value):
            return bool(value)
        case Apply(op, (left, right)) if op in COMPARISONS:
            if any(isinstance(x, Read) or (isinstance(x, Apply) and x.function == "/") for x in walk(node)):
                return None  # data may be no number at all, and a true division gives no integer
            d = (poly(left) - poly(right)).number
            if d is not None:
                return {"==": d == 0, "!=": d != 0, "<": d < 0, "<=": d <= 0, ">": d > 0, ">=": d >= 0}[op]
        case Apply("&&" | "||" as op, args):
            known, decisive = [truth(x) for x in args], op == "||"
            return decisive if decisive in known else None if None in known else not decisive
    return None
