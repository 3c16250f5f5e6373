"""Whether a line that does not wait in every step alike waits more often, or two recordings held other steps of it.

What comes once an epoch comes once or twice in 25 steps, and in 26 of the same program:

```text
every epoch of ten steps   --5---------5--------    two in 21
                               -5---------5---      two in 17: more a step, of the same program
```
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from statistics import mean, variance

from syncscope.analysis.steps import alike
from syncscope.analysis.summary import Key, key_of
from syncscope.model.report import Report

RARE = 0.01  # a chance below which what comes at no fixed distance has come more often
SURE = 3.0  # standard errors by which a mean is another


class StepCounts:
    """How often each line waits in each step of a recording: of those that are counted, and of all."""

    def __init__(self, report: Report) -> None:
        numbers = [step.index for step in report.steps]
        counted = {report.steps[n].index for n in alike(report.steps)}
        # A line may have no reads: on a CPU none wait.
        self._by_line: defaultdict[Key, Counter[int]] = defaultdict(Counter)
        for read in report.reads:
            self._by_line[key_of(read)][read.step] += 1
        self._all = numbers
        self._counted = [number for number in numbers if number in counted]

    def lines(self) -> Iterator[Key]:
        """The lines that wait in any step."""
        return (key for key, its in self._by_line.items() if any(its[n] for n in self._all))

    @property
    def length(self) -> int:
        """How many steps are counted."""
        return len(self._counted)

    def counted(self, key: Key) -> list[int]:
        """Of each counted step, how often it waits."""
        return [self._by_line[key][n] for n in self._counted]

    def when_it_waits(self, key: Key, above: int) -> list[int]:
        """How often it waits in steps in which it does so more than `above`: in counted ones, or else in any."""
        its = self._by_line[key]
        return [c for n in self._counted if (c := its[n]) > above] or [c for n in self._all if (c := its[n]) > above]


def may_be_alike(before: StepCounts, one: Key, after: StepCounts, other: Key) -> bool:
    """Whether a line may wait no more often in the second recording: what it does in some steps only, it does in as many of
    them as two windows of one program may hold, and no more often there."""
    first, second = before.counted(one), after.counted(other)
    if not first or not second:
        return False
    least = min(*first, *second)
    if least == max(second):  # in every step alike
        return True
    sizes = before.when_it_waits(one, least), after.when_it_waits(other, least)
    came_before = bool(sizes[0])  # else no step of the first recording waits as often as some of the second do
    as_often = came_before and _as_often([c > least for c in first], [c > least for c in second])
    return as_often and not _larger(*sizes) and not _larger(first, second)


def may_lie_between(before: StepCounts, after: StepCounts, key: Key) -> bool:
    """Whether a line that waits in no counted step of the first recording may do so as often there as in the second: that has
    as many steps one after another without it."""
    steps = after.counted(key)
    without = max((sum(1 for _ in run) for waits, run in groupby(steps, bool) if not waits), default=0)
    return 0 < before.length <= without


def _as_often(before: Sequence[bool], after: Sequence[bool]) -> bool:
    """Whether something comes in as many steps: one more or less at the ends of a window, or by chance what comes at no fixed
    distance."""
    one, other = sum(before), sum(after)
    if (other - 1) * len(before) <= (one + 1) * len(after):
        return True
    if _is_regular(before) or _is_regular(after):
        return False
    share = len(after) / (len(before) + len(after))
    every = one + other
    chances = (math.comb(every, k) * share**k * (1 - share) ** (every - k) for k in range(other, every + 1))
    return sum(chances) > RARE


def _is_regular(comes: Sequence[bool]) -> bool:
    """Whether it comes at one distance, as far as steps can tell: of what comes in most of them chance makes gaps as even."""
    gaps = [b - a for a, b in pairwise(n for n, does in enumerate(comes) if does)]
    return len(gaps) > 1 and min(gaps) > 1 and max(gaps) - min(gaps) <= 1


def _larger(before: Sequence[int], after: Sequence[int]) -> bool:
    """Whether these counts are surely larger on the mean; of one alone nothing is known of how they spread."""
    spread = sum(variance(each) / len(each) for each in (before, after) if len(each) > 1)
    return mean(after) - mean(before) > SURE * math.sqrt(spread)
