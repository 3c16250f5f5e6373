"""Over what each index variable runs, as Tensor Comprehensions finds it: in rounds, as far as no read leaves its tensor.

A variable with a `where` is known. Each round takes the indexes in which one variable only is unknown, and solves
0 <= index < size for it, whatever the known ones are. Ranges are polynomials in the sizes' names, so they are found once, when
the comprehension is written, and the numbers are put in at the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from typing import NamedTuple

from syncscope.kernels.comprehensions.expressions import Apply, Name, Poly, Read, combine, names, reads, walk
from syncscope.kernels.comprehensions.statements import Range, Statement, show
from syncscope.kernels.comprehensions.words import NotationError


class _Bound(NamedTuple):
    """An index that must stay inside, or that may leave: itself, the size, and the read as it is written."""

    place: Poly
    size: Poly
    said: str


def ranged(s: Statement, sizes: Mapping[str, tuple[Poly, ...]], fixed: Set[str], text: str) -> Statement:
    """A statement with the ranges of all its variables, of which it has those that a `where` gives.

    Raises:
        NotationError: a variable's range cannot be told.
    """
    seen = (s.value, *s.exists)
    every = [x for whole in seen for x in reads(whole)]
    variables = sorted((x for x in walk(s.value) if isinstance(x, Name) and x.name not in fixed), key=lambda x: x.at)
    unknown = list(dict.fromkeys([*s.out, *(x.name for x in variables)]))
    ranges, why = dict(s.ranges), dict.fromkeys(s.ranges, "where")

    def bounds(padded: bool) -> list[_Bound]:
        own = [x for x in every if (x.other is not None) is padded]
        return [_Bound(p, size, show(x)) for x in own for p, size in zip(x.indexes, sizes[x.tensor], strict=True)]

    inside = bounds(padded=False)
    while left := [name for name in unknown if name not in ranges]:
        solved: dict[str, list[tuple[Range, str]]] = {}
        for b in inside:
            open_ = names(b.place) - fixed - set(ranges)
            if len(open_) == 1 and (name := open_.pop()) in left and (found := _solved(b, name, ranges)):
                solved.setdefault(name, []).append((found, b.said))
        if not solved:  # a variable that is a whole index runs over that dimension, though outside were read, too
            for b in bounds(padded=True):
                for name in (n for n in left if b.place == Poly.of(n)):
                    solved.setdefault(name, []).append(((Poly(), b.size), b.said))
        if not solved:
            at = min((x.at for e in seen for x in walk(e) if isinstance(x, Name) and x.name == left[0]), default=s.at)
            message = f"cannot tell the range of {left[0]}: {_reason(left[0], every, inside, fixed | set(ranges))}"
            raise NotationError(text, at, message, f"write `where {left[0]} in 0:...`")
        for name, several in solved.items():
            lows, highs = zip(*(found for found, _ in several), strict=True)
            ranges[name], why[name] = (combine("max", *lows), combine("min", *highs)), several[0][1]
    return replace(s, ranges={name: ranges[name] for name in unknown}, why=why)


def _reason(name: str, every: list[Read], inside: list[_Bound], known: Set[str]) -> str:
    """Why nothing tells a variable's range."""
    for b in inside:
        if name in names(b.place):
            others = sorted(names(b.place) - known - {name})
            return f"{b.said} has {others[0]} unknown, too" if others else f"{b.said} is not linear in it"
    outside = next((show(x) for x in every if x.other is not None and name in names(x)), "")
    return f"{outside} is read outside, too" if outside else "it indexes no tensor on the right"


def _solved(bound: _Bound, name: str, ranges: Mapping[str, Range]) -> Range | None:
    """For which values of a variable 0 <= index < size, whatever the others; never from below 0."""
    parts = bound.place.linear(name)
    ends = None if parts is None else _extremes(parts[1], ranges)
    if parts is None or ends is None or parts[0].data or names(parts[0]) & set(ranges):
        return None
    factor, (least, most) = parts[0], ends
    if factor.number is not None and factor.number < 0:
        by = -factor
        low, high = combine("//", most - bound.size + by, by), combine("//", least, by) + 1
    else:  # a factor that has a name is a stride, which is at least 1
        low, high = combine("//", factor - 1 - least, factor), combine("//", bound.size - 1 - most, factor) + 1
    if low.number is not None:
        return Poly.of(max(0, low.number)), high
    if all(f < 0 for _, f in low.terms) or factor.number is None:
        return Poly(), high  # such as -P: sizes and parameters are no less than 0
    return combine("max", Poly(), low), high


def _extremes(p: Poly, ranges: Mapping[str, Range]) -> Range | None:
    """The least and the most of a polynomial over the ranges; None where that cannot be told by its names."""
    least = most = Poly()
    for monomial, number in p.terms:
        own = [v.name for v in monomial if isinstance(v, Name) and v.name in ranges]
        others = tuple(v for v in monomial if not (isinstance(v, Name) and v.name in ranges))
        if len(own) > 1 or any(
            isinstance(v, Apply | Read) and (Poly.of(v).data or names(v) & set(ranges)) for v in others
        ):
            return None
        factor = Poly(((others, number),))
        low, high = ranges[own[0]] if own else (Poly.of(1), Poly.of(2))
        ends = (low, high - 1) if number > 0 else (high - 1, low)
        least, most = least + factor * ends[0], most + factor * ends[1]
    return least, most
