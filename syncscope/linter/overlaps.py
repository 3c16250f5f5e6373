"""What stands where in a file: of many things with a span those that overlap one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from operator import itemgetter
from typing import Generic, TypeVar

from syncscope.model.source import Span

Thing = TypeVar("Thing")


class Overlaps(Generic[Thing]):
    """Things by their spans, in the order in which they came."""

    def __init__(self, things: Iterable[tuple[Span, Thing]]) -> None:
        numbered = enumerate(things)
        self._placed = sorted(
            ((span.start, span.end, n, thing) for n, (span, thing) in numbered), key=itemgetter(0, 1, 2)
        )
        self._ends = [*accumulate((end for _, end, _, _ in self._placed), max)]  # the last end up to each

    def __bool__(self) -> bool:
        return bool(self._placed)

    def of(self, span: Span) -> list[Thing]:
        """Those that have a byte in common with this span, or surround where it stands."""
        at, found = bisect_left(self._placed, span.end, key=itemgetter(0)), []
        while at and self._ends[at - 1] > span.start:
            at -= 1
            _, end, number, thing = self._placed[at]
            if end > span.start:
                found.append((number, thing))
        return [thing for _, thing in sorted(found, key=itemgetter(0))]
