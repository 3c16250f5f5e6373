"""Integers of which some parts have only names: index expressions, sizes and ranges as polynomials.

Variables are names of sizes, of integer parameters and of index variables. What is no polynomial (a quotient, the least of two
sizes, an index that data decides) is an `Atom`, a variable with something inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Union

from syncscope.kernels.comprehension.tree import Apply, Name, Node, Number


@dataclass(frozen=True, slots=True)
class Atom:
    """`kind` is "/", "%", "min" or "max" of polynomials, or "value", an expression that is no index."""

    kind: str
    parts: tuple[Poly, ...] = ()
    node: Node | None = None


Variable = Union[str, Atom]  # noqa: UP007 - at run time, before Python 3.10's own would know Atom
Monomial = tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Poly:
    """A sum of products of variables, each with its factor."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @classmethod
    def of(cls, x: int | str | Atom) -> Poly:
        """A number, or a variable."""
        if isinstance(x, int):
            return cls((((), x),)) if x else cls()
        return cls((((x,), 1),))

    @classmethod
    def _from(cls, terms: Mapping[Monomial, int]) -> Poly:
        return cls(tuple(sorted(((m, f) for m, f in terms.items() if f), key=_place)))

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

    def variables(self) -> set[str]:
        """Every name in it, at any depth, but for those in expressions that are no index."""
        found: set[str] = set()
        for monomial, _ in self.terms:
            for v in monomial:
                found |= {v} if isinstance(v, str) else set[str]().union(*(p.variables() for p in v.parts))
        return found

    def values(self) -> list[Node]:
        """The expressions in it that are no index, at any depth."""
        found: list[Node] = []
        for monomial, _ in self.terms:
            for v in monomial:
                if isinstance(v, Atom):
                    found += [v.node] if v.node is not None else [x for p in v.parts for x in p.values()]
        return found

    def linear(self, name: str) -> tuple[Poly, Poly] | None:
        """`factor` and `rest` of `factor * name + rest`, neither with the name in it; None if it is not of that form."""
        factor, rest = Poly(), Poly()
        for monomial, number in self.terms:
            one = Poly(((monomial, number),))
            if name in monomial:
                left = list(monomial)
                left.remove(name)
                factor += Poly(((tuple(left), number),))
            else:
                rest += one
        return None if name in factor.variables() | rest.variables() else (factor, rest)

    def replaced(self, given: Mapping[str, Poly], node: Callable[[Node], Node] = lambda x: x) -> Poly:
        """With polynomials for variables, and expressions that are no index changed by `node`."""
        result = Poly()
        for monomial, factor in self.terms:
            term = Poly.of(factor)
            for v in monomial:
                if isinstance(v, str):
                    term *= given.get(v, Poly.of(v))
                elif v.node is not None:
                    term *= Poly.of(Atom("value", (), node(v.node)))
                else:
                    term *= combine(v.kind, *(p.replaced(given, node) for p in v.parts))
            result += term
        return result

    def node(self) -> Node:
        """As an expression of the notation: what is added, what is taken away, and a number last unless it must lead."""
        led = any(factor > 0 and monomial for monomial, factor in self.terms)
        result: Node | None = None
        for monomial, factor in sorted(self.terms, key=lambda term: (not term[0] and led, term[1] < 0)):
            parts = [Name(v) if isinstance(v, str) else _atom_node(v) for v in monomial]
            size = abs(factor)
            if size != 1 or not parts:
                parts.insert(0, Number(size))
            term = parts[0]
            for part in parts[1:]:
                term = Apply("*", (term, part))
            if result is None:
                result = term if factor > 0 else Number(-size) if isinstance(term, Number) else Apply("neg", (term,))
            else:
                result = Apply("+" if factor > 0 else "-", (result, term))
        return Number(0) if result is None else result


def _place(term: tuple[Monomial, int]) -> tuple[int, str]:
    return len(term[0]), str(term[0])


def _poly(x: Poly | int) -> Poly:
    return x if isinstance(x, Poly) else Poly.of(x)


def _atom_node(atom: Atom) -> Node:
    if atom.node is not None:
        return atom.node
    kind = "//" if atom.kind == "/" else atom.kind  # it may come to stand among values, where / is a true division
    return Apply(kind, tuple(p.node() for p in atom.parts))


def combine(kind: str, *parts: Poly) -> Poly:
    """Quotient and rest as Python has them, the least and the most of two."""
    numbers = [p.number for p in parts]
    known = [n for n in numbers if n is not None]
    if kind in ("min", "max"):
        distinct = tuple(dict.fromkeys(parts))
        if len(distinct) == 1:
            return parts[0]
        return (
            Poly.of((min if kind == "min" else max)(known))
            if len(known) == len(parts)
            else Poly.of(Atom(kind, distinct))
        )
    a, b = parts
    if numbers[1] == 1:
        return a if kind == "/" else Poly()
    if len(known) == 2 and numbers[1]:
        return Poly.of(known[0] // known[1] if kind == "/" else known[0] % known[1])
    if numbers[1] and kind == "/" and all(f % numbers[1] == 0 for _, f in a.terms):
        return Poly(tuple((m, f // numbers[1]) for m, f in a.terms))
    if numbers[1] and kind == "%" and all(f % numbers[1] == 0 for _, f in a.terms):
        return Poly()
    if kind == "/" and a == b:
        return Poly.of(1)
    return Poly.of(Atom(kind, (a, b)))


def poly(node: Node) -> Poly:
    """An index expression; what is none of integers by itself becomes an atom."""
    match node:
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


Interval = tuple[float, float]


def interval(p: Poly, ranges: Mapping[str, Interval]) -> Interval:
    """The least and the greatest value over ranges with both ends included; infinite where that is not known."""
    low = high = 0.0
    for monomial, factor in p.terms:
        a = b = float(factor)
        for v in monomial:
            ends = ranges.get(v, (-math.inf, math.inf)) if isinstance(v, str) else _atom_interval(v, ranges)
            products = [x * y if x and y else 0.0 for x in (a, b) for y in ends]
            a, b = min(products), max(products)
        low, high = low + a, high + b
    return low, high


def _atom_interval(v: Atom, ranges: Mapping[str, Interval]) -> Interval:
    ends = [interval(p, ranges) for p in v.parts]
    if v.kind in ("min", "max"):
        pick = min if v.kind == "min" else max
        return pick(e[0] for e in ends), pick(e[1] for e in ends)
    if v.kind in "/%" and ends[1][0] == ends[1][1] > 0 and math.isfinite(ends[0][0]) and math.isfinite(ends[0][1]):
        low, high, by = int(ends[0][0]), int(ends[0][1]), int(ends[1][0])
        if v.kind == "/":
            return low // by, high // by
        return (low % by, high % by) if low // by == high // by else (0, by - 1)
    return -math.inf, math.inf
