"""Over what each index variable runs, as Tensor Comprehensions finds it: in rounds, as far as no read leaves its tensor.

A variable with a `where` is known. Each round takes the indexes in which one variable only is unknown, and solves
0 <= index < size for it, whatever the known ones are. Ranges are polynomials in the sizes' names, so they are found once, when
the comprehension is written, and the numbers are put in at the call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from syncscope.kernels.comprehension.expressions import (
    Name,
    Node,
    Poly,
    Size,
    combine,
    names,
    poly,
    reads,
    rewrite,
    walk,
)
from syncscope.kernels.comprehension.statements import Function, Statement, show
from syncscope.kernels.comprehension.words import NotationError

Range = tuple[Poly, Poly]  # from the first to before the second


@dataclass(frozen=True, slots=True)
class Ranged:
    """A statement and its variables' ranges: those on the left, then those that are reduced, in the order they appear in."""

    statement: Statement
    ranges: dict[str, Range]
    value: Node  # without sizes of tensors
    why: dict[str, str]  # by variable: the index that gave the range, or "where"

    @property
    def reduced(self) -> tuple[str, ...]:
        """The variables that are on the right only."""
        return tuple(name for name in self.ranges if name not in self.statement.indexes)


@dataclass(frozen=True, slots=True)
class Ranges:
    """Of a function: the sizes of every tensor, and each statement's ranges."""

    sizes: dict[str, tuple[Poly, ...]]
    statements: tuple[Ranged, ...]


def infer(f: Function) -> Ranges:
    """The ranges of all statements.

    Raises:
        NotationError: a variable's range cannot be told.
    """
    sizes = {p.name: tuple(map(poly, p.dims or ())) for p in f.parameters}
    fixed = {p.name for p in f.parameters if p.dims is None}
    fixed = fixed.union(*(names(d) for p in f.parameters for d in p.dims or ()))
    found: list[Ranged] = []
    for s in f.statements:
        found.append(_Rounds(f, s, sizes, fixed).ranged())
        sizes.setdefault(s.target, tuple(found[-1].ranges[name][1] for name in s.indexes))
    return Ranges(sizes, tuple(found))


@dataclass(frozen=True, slots=True)
class _Bound:
    """An index that must stay inside, or that may leave: itself, the size, and the read as it is written."""

    index: Poly
    size: Poly
    said: str


class _Rounds:
    def __init__(self, f: Function, s: Statement, sizes: Mapping[str, tuple[Poly, ...]], fixed: set[str]) -> None:
        self.f, self.s, self.sizes, self.fixed = f, s, sizes, fixed
        self.value = self.sized(s.value)
        self.seen = (self.value, *map(self.sized, s.exists))
        self.ranges: dict[str, Range] = {}
        self.why: dict[str, str] = {}

    def sized(self, node: Node) -> Node:
        """With the sizes themselves for `A.0`."""
        return rewrite(node, lambda x: self.sizes[x.tensor][x.dim].node() if isinstance(x, Size) else x)

    def bounds(self, padded: bool) -> Iterator[_Bound]:
        for x in (x for whole in self.seen for x in reads(whole)):
            if (x.other is not None) is padded:
                for index, size in zip(x.polys, self.sizes[x.tensor], strict=True):
                    yield _Bound(index, size, show(x))

    def ranged(self) -> Ranged:
        s = self.s
        for name, low, high in s.ranges:
            self.ranges[name], self.why[name] = (self.end(name, low), self.end(name, high)), "where"
        in_text = sorted((x for x in walk(self.value) if isinstance(x, Name)), key=lambda x: x.at)
        unknown = list(dict.fromkeys([*s.indexes, *(x.name for x in in_text if x.name not in self.fixed)]))
        bounds = list(self.bounds(padded=False))
        if s.target in self.sizes:
            said = f"{s.target}({', '.join(s.indexes)})"
            bounds += [_Bound(Poly.of(n), size, said) for n, size in zip(s.indexes, self.sizes[s.target], strict=True)]
        while left := [name for name in unknown if name not in self.ranges]:
            solved: dict[str, list[tuple[Range, str]]] = {}
            for b in bounds:
                open_ = b.index.variables() - self.fixed - set(self.ranges)
                if len(open_) == 1 and (name := open_.pop()) in left and (found := self.solve(b, name)):
                    solved.setdefault(name, []).append((found, b.said))
            if not solved:  # a variable that is a whole index runs over that dimension, though outside were read, too
                for b in self.bounds(padded=True):
                    for name in (n for n in left if b.index == Poly.of(n)):
                        solved.setdefault(name, []).append(((Poly(), b.size), b.said))
            if not solved:
                raise self.lost(left[0], bounds)
            for name, several in solved.items():
                lows, highs = zip(*(found for found, _ in several), strict=True)
                self.ranges[name], self.why[name] = (combine("max", *lows), combine("min", *highs)), several[0][1]
        return Ranged(s, {name: self.ranges[name] for name in unknown}, self.value, self.why)

    def end(self, name: str, node: Node) -> Poly:
        """An end of a range that a `where` gives."""
        end = poly(self.sized(node))
        on = "data" if end.parts else min(end.variables() - self.fixed, default="")
        if on:
            raise self.f.error(node.at, f"the range of {name} depends on {on}", "ranges are made of sizes")
        return end

    def solve(self, bound: _Bound, name: str) -> Range | None:
        """For which values of a variable 0 <= index < size, whatever the others; never from below 0."""
        parts = bound.index.linear(name)
        ends = None if parts is None else self.extremes(parts[1])
        if parts is None or ends is None or parts[0].parts or parts[0].variables() & set(self.ranges):
            return None
        factor, (least, most) = parts[0], ends
        if factor.number is not None and factor.number < 0:
            by = -factor
            low, high = combine("/", most - bound.size + by, by), combine("/", least, by) + 1
        else:  # a factor that has a name is a stride, which is at least 1
            low, high = combine("/", factor - 1 - least, factor), combine("/", bound.size - 1 - most, factor) + 1
        if low.number is not None:
            return Poly.of(max(0, low.number)), high
        if all(f < 0 for _, f in low.terms) or factor.number is None:
            return Poly(), high  # such as -P: sizes and parameters are no less than 0
        return combine("max", Poly(), low), high

    def extremes(self, p: Poly) -> tuple[Poly, Poly] | None:
        """The least and the most of a polynomial over the ranges; None where that cannot be told by its names."""
        least = most = Poly()
        for monomial, number in p.terms:
            own = [v for v in monomial if isinstance(v, str) and v in self.ranges]
            inside = [q for v in monomial if not isinstance(v, str) for q in (v.parts or (Poly.of(v),))]
            if len(own) > 1 or any(q.parts or q.variables() & set(self.ranges) for q in inside):
                return None
            others = list(monomial)
            for name in own:
                others.remove(name)
            factor = Poly(((tuple(others), number),))
            low, high = self.ranges[own[0]] if own else (Poly.of(1), Poly.of(2))
            ends = (low, high - 1) if number > 0 else (high - 1, low)
            least, most = least + factor * ends[0], most + factor * ends[1]
        return least, most

    def lost(self, name: str, bounds: list[_Bound]) -> NotationError:
        """The error for a variable whose range nothing tells."""
        at = min(
            (x.at for whole in self.seen for x in walk(whole) if isinstance(x, Name) and x.name == name), default=-1
        )
        reason = "it indexes no tensor on the right"
        for read in (x for x in reads(self.s.value) if x.other is not None and name in names(x)):
            reason = f"{show(read)} is read outside, too"
            break
        for b in bounds:
            if name in b.index.variables():
                others = sorted(b.index.variables() - self.fixed - set(self.ranges) - {name})
                reason = f"{b.said} has {others[0]} unknown, too" if others else f"{b.said} is not linear in it"
                break
        message = f"cannot tell the range of {name}: {reason}"
        return self.f.error(self.s.at if at < 0 else at, message, f"write `where {name} in 0:...`")
