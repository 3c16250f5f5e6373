"""What the last rank of a collective was late by: what it did itself, or what is left of a start that was late.

```text
rank 0   begins |--| asks, and waits in a sync .................|----| asks again
rank 1                                begins, late |--| asks    |---------| asks again, late by what it had no time for
```

A host that begins later than the others is behind until these have waited for it in their syncs. As far as it did not spend
longer itself since, that it is behind is still its late start, however many collectives later.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.owed import LateBy
from syncscope.analysis.rank import Rank

Who = Sequence[tuple[int, int]]
"""Who takes part in a collective: positions of ranks, and the number of the collective on each."""


class LateCauses:
    """Told the collectives in the order in which their last ranks come. `begins` are those of the recordings, on one clock."""

    def __init__(self, ranks: Sequence[Rank], begins: Sequence[float]) -> None:
        self._ranks, self._begins = ranks, np.array(begins)
        self._spent = [
            np.cumsum([(0.0, 0.0), *((one.blocked, one.launching + one.hosting) for one in rank.collectives)], axis=0)
            for rank in ranks
        ]
        self._left: dict[tuple[int, ...], NDArray[np.float64]] = {}  # of the late starts of ranks that meet
        self._before: dict[
            tuple[int, ...], list[NDArray[np.float64]]
        ] = {}  # what each had spent when these met at last

    def of(self, who: Who, last: int) -> LateBy:
        """What the last rank spent more time on than the middle one, since the collective before, or its late start. Where that
        is nothing, and it waited in no sync, it was late there already: by its host if that asked later than the others, else
        by its device.
        """
        these = [self._ranks[r].collectives[c] for r, c in who]
        asked = np.array([self._begins[r] + one.start - one.queued for (r, _), one in zip(who, these, strict=True)])
        left = self._left_of_starts(who, asked)[last]
        if who[last][1] > 0:  # and only as far as its device had nothing else to do
            left = min(left, behind([one.idle for one in these])[last])
        spent = np.array(
            [(one.blocked, one.launching, one.hosting, one.queued) for one in these]
        )  # as `LateBy` has them
        extra = [*(float(behind(column)[last]) for column in spent.T), float(left)]
        if max(extra) <= 0.0 and not these[last].blocked:
            return LateBy.HOST if behind(asked)[last] > 0 else LateBy.DEVICE
        causes: list[LateBy] = list(LateBy)
        return causes[int(np.argmax(extra))]

    def _left_of_starts(self, who: Who, asked: NDArray[np.float64]) -> NDArray[np.float64]:
        """How much of what each asks later than the middle one of the others is still by its late start: it never grows, and
        what a rank spent longer itself since these met is none of it."""
        ranks = tuple(r for r, _ in who)
        spent = [self._spent[r][c + 1] for r, c in who]
        before = self._before.get(ranks, [np.zeros(2)] * len(who))
        own = sum(np.maximum(0.0, behind(column)) for column in (np.array(spent) - np.array(before)).T)
        left = self._left.get(ranks, behind(self._begins[list(ranks)]))
        self._before[ranks] = spent
        self._left[ranks] = np.maximum(0.0, np.minimum(left, behind(asked) - own))
        return self._left[ranks]


def behind(values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much each of two or more numbers is above the median of the others."""
    each = np.array(values, float)
    others, order = len(each) - 1, np.argsort(each, kind="stable")
    place = np.empty(len(each), np.intp)
    place[order] = np.arange(len(each))
    middle = [each[order[at + (place <= at)]] for at in ((others - 1) // 2, others // 2)]
    found: NDArray[np.float64] = each - (middle[0] + middle[1]) / 2
    return found
