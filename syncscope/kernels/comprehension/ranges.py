"""Over what each index variable runs, as Tensor Comprehensions finds it: in rounds, as far as no read leaves its tensor.

A variable with a `where` is known. Each round takes the indexes in which one variable only is unknown, and solves
0 <= index < size for it, whatever the known ones are. Ranges are polynomials in the sizes' names, so they are found once, when
the comprehension is written, and the numbers are put in at the call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from syncscope.kernels.comprehension.algebra import Poly, combine, poly
from syncscope.kernels.comprehension.tree import (
    Apply,
    Function,
    Name,
    Node,
    Number,
    Read,
    Size,
    Statement,
    names,
    rewrite,
    show,
    walk,
)  # fmt: skip
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
    fixed = {p.name for p in f.parameters if p.dims is None} | {
        n for p in f.parameters for d in p.dims or () for n in names(d)
    }
    found: list[Ranged] = []
    for s in f.statements:
        ranged = _statement(f, s, sizes, fixed)
        sizes.setdefault(s.target, tuple(ranged.ranges[name][1] for name in s.indexes))
        found.append(ranged)
    return Ranges(sizes, tuple(found))


def sized(node: Node, sizes: Mapping[str, tuple[Poly, ...]]) -> Node:
    """With the sizes themselves for `A.0`."""
    return rewrite(node, lambda x: sizes[x.tensor][x.dim].node() if isinstance(x, Size) else x)


def _statement(f: Function, s: Statement, sizes: dict[str, tuple[Poly, ...]], fixed: set[str]) -> Ranged:
    value = sized(s.value, sizes)
    exists = [sized(x, sizes) for x in s.exists]
    places = dict.fromkeys(s.indexes, s.at) | {
        x.name: x.at for whole in (value, *exists) for x in reversed(list(walk(whole))) if isinstance(x, Name)
    }
    unknown = [*s.indexes, *(name for name in dict.fromkeys(_names(value)) if name not in {*s.indexes, *fixed})]
    ranges: dict[str, Range] = {}
    why: dict[str, str] = {}
    for name, low, high in s.ranges:
        ends = poly(sized(low, sizes)), poly(sized(high, sizes))
        for end, node in zip(ends, (low, high), strict=True):
            if strange := sorted(end.variables() - fixed):
                raise NotationError(
                    f.text, node.at, f"the range of {name} depends on {strange[0]}", "ranges are made of sizes"
                )
            if end.values():
                raise NotationError(f.text, node.at, f"the range of {name} depends on data", "ranges are made of sizes")
        ranges[name], why[name] = ends, "where"
    bounds = [x for whole in (value, *exists) for x in _bounds(whole, sizes, padded=False)]
    if s.target in sizes:
        bounds += [
            (poly(Name(n)), size, f"{s.target}({', '.join(s.indexes)})")
            for n, size in zip(s.indexes, sizes[s.target], strict=True)
        ]
    while left := [name for name in unknown if name not in ranges]:
        solved: dict[str, list[tuple[Range, str]]] = {}
        for index, size, said in bounds:
            open_ = index.variables() - fixed - set(ranges)
            if len(open_) == 1 and (name := open_.pop()) in left and (range_ := _solve(index, size, name, ranges)):
                solved.setdefault(name, []).append((range_, said))
        if not solved:  # a variable that is a whole index runs over that dimension, though outside were read, too
            for index, size, said in [x for whole in (value, *exists) for x in _bounds(whole, sizes, padded=True)]:
                whole = next((name for name in left if index == Poly.of(name)), None)
                if whole is not None:
                    solved.setdefault(whole, []).append(((Poly(), size), said))
        if not solved:
            raise _lost(f, s, left[0], places, bounds, fixed, ranges)
        for name, several in solved.items():
            lows, highs = (tuple(dict.fromkeys(r[i] for r, _ in several)) for i in (0, 1))
            ranges[name] = combine("max", *lows), combine("min", *highs)
            why[name] = several[0][1]
    return Ranged(s, {name: ranges[name] for name in unknown}, value, why)


def _names(node: Node) -> Iterator[str]:
    """In the order of the text."""
    return (x.name for x in sorted((x for x in walk(node) if isinstance(x, Name)), key=lambda x: x.at))


def _bounds(whole: Node, sizes: Mapping[str, tuple[Poly, ...]], padded: bool) -> Iterator[tuple[Poly, Poly, str]]:
    """Every index that must stay inside, or may leave: itself, the size, and the read as it is written."""
    for x in walk(whole):
        if isinstance(x, Read) and (x.other is not None) is padded:
            for index, size in zip(x.indexes, sizes[x.tensor], strict=True):
                yield poly(index), size, show(x)


def _solve(index: Poly, size: Poly, name: str, ranges: Mapping[str, Range]) -> Range | None:
    """For which values of a variable 0 <= index < size, whatever the others; never from below 0."""
    parts = index.linear(name)
    if parts is None:
        return None
    factor, rest = parts
    ends = _ends(rest, ranges)
    if ends is None or factor.values() or factor.variables() & set(ranges):
        return None
    least, most = ends
    if factor.number is not None and factor.number < 0:
        by = -factor
        low, high = combine("/", most - size + by, by), combine("/", least, by) + 1
    else:  # a factor that has a name is a stride, which is at least 1
        low, high = combine("/", factor - 1 - least, factor), combine("/", size - 1 - most, factor) + 1
    if low.number is not None:
        low = Poly.of(max(0, low.number))
    elif all(f < 0 for _, f in low.terms) or factor.number is None:
        low = Poly()  # such as -P: sizes and parameters are no less than 0
    else:
        low = combine("max", Poly(), low)
    return low, high


def _ends(p: Poly, ranges: Mapping[str, Range]) -> tuple[Poly, Poly] | None:
    """The least and the most of a polynomial over ranges; None where that cannot be told by its names."""
    least = most = Poly()
    for monomial, number in p.terms:
        own = [v for v in monomial if isinstance(v, str) and v in ranges]
        if any(
            not isinstance(v, str) and (v.node is not None or (v.parts and _depends(v.parts, ranges))) for v in monomial
        ):
            return None
        if not own:
            least, most = least + Poly(((monomial, number),)), most + Poly(((monomial, number),))
            continue
        if len(own) > 1:
            return None
        others = list(monomial)
        others.remove(own[0])
        factor = Poly(((tuple(others), number),))
        low, high = ranges[own[0]][0], ranges[own[0]][1] - 1
        least, most = least + factor * (low if number > 0 else high), most + factor * (high if number > 0 else low)
    return least, most


def _depends(parts: tuple[Poly, ...], ranges: Mapping[str, Range]) -> bool:
    return any(p.variables() & set(ranges) or p.values() for p in parts)


def _lost(
    f: Function, s: Statement, name: str, places: dict[str, int], bounds: list[tuple[Poly, Poly, str]], fixed: set[str],
    ranges: dict[str, Range],
) -> NotationError:  # fmt: skip
    """The error for a variable whose range nothing tells."""
    at = places.get(name, s.at)
    hint = f"write `where {name} in 0:...`"
    for index, _, said in bounds:
        others = sorted(index.variables() - fixed - set(ranges) - {name})
        if name in index.variables():
            if others:
                return NotationError(
                    f.text, at, f"cannot tell the range of {name}: {said} has {others[0]} unknown, too", hint
                )
            return NotationError(f.text, at, f"cannot tell the range of {name}: {said} is not linear in it", hint)
    padded = next((x for x in walk(s.value) if isinstance(x, Read) and x.other is not None and name in names(x)), None)
    reason = f": {show(padded)} is read outside, too" if padded is not None else ": it indexes no tensor on the right"
    return NotationError(f.text, at, f"cannot tell the range of {name}{reason}", hint)


def truth(node: Node) -> bool | None:
    """Whether a condition of numbers alone holds; None where it is not one of numbers alone."""
    match node:
        case Number(value):
            return bool(value)
        case Apply("==" | "!=" | "<" | "<=" | ">" | ">=" as op, (left, right)):
            if any(isinstance(x, Apply) and x.function == "/" for x in walk(node)):
                return None  # a true division gives no integer
            d = (poly(left) - poly(right)).number
            if d is not None:
                return {"==": d == 0, "!=": d != 0, "<": d < 0, "<=": d <= 0, ">": d > 0, ">=": d >= 0}[op]
        case Apply("&&", (left, right)):
            both = truth(left), truth(right)
            return False if False in both else None if None in both else True
        case Apply("||", (left, right)):
            both = truth(left), truth(right)
            return True if True in both else None if None in both else False
    return None
