"""Versions of a program run in turns: the ratio of their steps to those as written, and between what it lies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, median

import numpy as np

from syncscope.analysis.errors import centre, student
from syncscope.turns import sequential

LONG = 1.5  # times the usual step: one that is still warming up
ALIKE = 3  # such steps in a row, and it has warmed up
LONGEST = 0.05  # the part of the steps that is left out: what a busy machine does to some
OUTSIDE = 0.025  # of an interval's probability, on either side
SLIGHT = 0.02  # of a step: what gives less is no gain
WIDE = 0.05  # half the interval of a ratio that says nothing of what waits cost
AT_LAST = 0.68  # of an interval, about: what it is in the last look
FEWEST = 3  # turns from which an interval is believed


@dataclass(frozen=True)
class Ratio:
    """Of two steps; `low` to `high` holds the truth in 95 of 100 cases."""

    ratio: float
    low: float
    high: float
    turns: int = 0

    def __str__(self) -> str:
        """`0.914 (0.902 to 0.926)`; of fewer turns than an interval is believed from, how many there were."""
        turns = f"{self.turns} turns" if self.turns > 1 else "one turn"
        return f"{self.ratio:.3f}" + (f" ({self.low:.3f} to {self.high:.3f})" if self.is_bounded else f" (of {turns})")

    @property
    def is_bounded(self) -> bool:
        """Whether there is an interval that is believed."""
        return self.turns >= FEWEST and math.isfinite(self.high)

    @property
    def half(self) -> float:
        """Half the interval."""
        return (self.high - self.low) / 2

    def one_of(self, number: int) -> Ratio:
        """With an interval that holds the truth in all of so many ratios as often as this one does in one (Bonferroni)."""
        wider = NormalDist().inv_cdf(1 - OUTSIDE / number) / NormalDist().inv_cdf(1 - OUTSIDE)
        low, high = (self.ratio * (end / self.ratio) ** wider for end in (self.low, self.high))
        return replace(self, low=low, high=high)

    @property
    def gains(self) -> bool:
        """Whether the step is surely shorter."""
        return self.turns >= FEWEST and self.high < 1.0

    @property
    def loses(self) -> bool:
        """Whether it is surely longer."""
        return self.turns >= FEWEST and self.low > 1.0

    @property
    def is_open(self) -> bool:
        """Whether more turns may tell of a gain: none is excluded, and the interval is wide, or has one in its middle."""
        return self.low <= 1.0 - SLIGHT and (self.half > WIDE or self.ratio < 1.0 - SLIGHT / 2)


def settled(lengths: Sequence[float | None]) -> list[float]:
    """ns of the steps from where they are alike; None among them is a step in which kernels were built."""
    late = [length for length in lengths[len(lengths) // 2 :] if length is not None]
    if not late:
        return []
    most = LONG * median(late)
    for first in range(len(lengths)):
        if all(length is not None and length <= most for length in lengths[first : first + ALIKE]):
            return [length for length in lengths[first:] if length is not None]
    return late


def step(lengths: Sequence[float | None]) -> float | None:
    """The step of one run, ns: the mean of those that are alike, without the longest of them."""
    alike = sorted(settled(lengths))
    kept = alike[: len(alike) - math.ceil(LONGEST * len(alike))] if len(alike) > 2 else alike
    return float(np.mean(kept)) if kept else None


def ratio_of(pairs: Sequence[tuple[float, float]]) -> Ratio | None:
    """From (as written, rewritten) of each turn; None without one."""
    if not pairs:
        return None
    logs = np.log([after / before for before, after in pairs])
    middle, low, high = np.exp(centre(logs)).tolist()
    return Ratio(middle, low, high, len(pairs))


def ratio_at_all_times(logs: Sequence[float], is_last: bool = False) -> Ratio | None:
    """From the logarithm of the ratio of each turn, with an interval that may be looked at after every turn, and in the last
    look is narrower: `turns.sequential`. None without one."""
    if not logs:
        return None
    middle, low, high = (math.exp(end) for end in sequential.interval(logs, is_last))
    return Ratio(middle, low, high, len(logs))


def decides(found: Ratio | None) -> bool:
    """Whether an interval that may be looked at at any time says that there is a gain, or none that is worth a word."""
    return found is not None and found.turns >= FEWEST and (found.high < 1.0 or found.low > 1.0 - SLIGHT)


def turns_to_come(found: Ratio | None, part: float = 1.0) -> float:
    """About how many more turns decide, since an interval becomes half as wide by four times as many; inf where that is not
    known. `part`: of the interval, where the last look is narrower."""
    if found is None or not math.isfinite(found.high):
        return math.inf
    apart = 1 - found.ratio if found.ratio < 1 - SLIGHT / 2 else found.ratio - (1 - SLIGHT)
    return found.turns * max(0.0, (part * found.half / apart) ** 2 - 1)


def turns_that_decide(found: Ratio | None, at_all_times: bool) -> float:
    """About how many turns decide, if the ratio and its spread stay what they are; inf where that is not known. `at_all_times`:
    of an interval that is looked at after every turn, else Student's, which is wide where turns are few."""
    if found is None or found.turns < 2 or not 0.0 < found.low <= found.high < math.inf:
        return math.inf
    if at_all_times:
        return found.turns + turns_to_come(found, AT_LAST)
    apart = 1 - found.ratio if found.ratio < 1 - SLIGHT / 2 else found.ratio - (1 - SLIGHT)
    freedom = found.turns - 1
    spread = math.log(found.high / found.low) / 2 * found.turns**0.5 / student(freedom)
    turns = float(found.turns)
    for _ in range(8):  # which few turns make, as the quantile depends on them
        turns = max(float(FEWEST), (student(turns - 1) * spread / apart) ** 2)
    return turns


def narrow(found: Ratio | None, precision: float, fewest: int = FEWEST) -> bool:
    """Whether further turns are not worth their time: the interval is small, also beside the gain itself."""
    if found is None or found.turns < fewest:
        return False
    return found.half <= max(precision, abs(1 - found.ratio) / 5)
