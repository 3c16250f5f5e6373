"""Rounds of a loop beside what was foretold of them, and the table that `prediction.py` prints of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import mean, median
from typing import NamedTuple

NOISY = 0.05  # A/A from which on a loop says nothing
OTHER = 0.2  # of its launches, from which on a loop without waits does other work
COLUMNS = (
    "as written",
    "without",
    "A/A",
    "predicted",
    "range",
    "error",
    "saves: said",
    "really",
    "off",
    "by blocked",
    "launches",
)


@dataclass(frozen=True, slots=True)
class Round:
    """ms a step: as written and without waits, of each turn; what was foretold of the latter."""

    written: list[float]
    without: list[float]
    step: float = 0.0
    predicted: float | None = None  # None: no price was given
    low: float = 0.0
    high: float = 0.0
    by_blocked: float = 0.0
    waits: bool = True  # as written; else there is nothing to foretell, and nothing is refused
    launches: float = 1.0  # without waits, as times of those as written that are not for a read

    @property
    def saves(self) -> float:
        """The share of a step that the waits really cost: in every turn of one version, beside that of the other."""
        return 1 - median(b / a for a, b in zip(self.written, self.without, strict=True))

    @property
    def promised(self) -> bool:
        """Whether a shorter step is promised: its whole range is shorter."""
        return self.predicted is not None and self.high < self.step

    @property
    def same(self) -> float:
        """By how much two turns of one version seem to differ: the same of such as followed one another."""
        pairs = [
            *zip(self.written[1::2], self.written[2::2], strict=False),
            *zip(self.without[::2], self.without[1::2], strict=True),
        ]
        return abs(1 - median(b / a for a, b in pairs))


def interval(values: list[float]) -> tuple[float, float]:
    """The 95 % interval of the mean of some values; of one, that value."""
    import numpy as np

    from syncscope.analysis.errors import half_interval

    half = half_interval(np.array(values))
    return mean(values) - half, mean(values) + half


class Errors(NamedTuple):
    """By how much the prices of a loop were off: the step, the share, blocked time's step; and what to think of it."""

    step: float
    share: float
    blocked: float
    sign: bool  # whether it is wrong
    noisy: bool  # A/A says that the truth is not known well enough
    outside: int = 0  # prices of single rounds whose range does not hold the truth
    other: bool = False  # whether the loop without waits does other work, too


def row(name: str, found: list[Round], errors: list[Errors]) -> str:
    """A line of the table; `errors` gets those of the loop, if it has a price."""
    written, without = (
        median(time for one in found for time in getattr(one, which)) for which in ("written", "without")
    )
    really, same = median(one.saves for one in found), median(one.same for one in found)
    told = [one for one in found if one.predicted is not None]
    cells = [f"{written:.2f}", f"{without:.2f}", f"{same:.1%}"]
    if told:
        predicted = median(one.predicted or 0.0 for one in told)
        low, high = median(one.low for one in told), median(one.high for one in told)
        said = median(1 - (one.predicted or 0.0) / one.step for one in told)
        error = median((one.predicted or 0.0) / median(one.without) for one in told) - 1
        naive = median(one.by_blocked / median(one.without) for one in told) - 1
        low_truth, high_truth = interval([one.saves for one in found])
        surely = low_truth > same or high_truth < -same
        outside = sum(_outside(one, (low_truth, high_truth)) for one in told)
        launches = median(one.launches for one in told)
        other = abs(math.log(launches)) > math.log1p(OTHER)
        errors.append(Errors(error, said - really, naive, surely and said * really < 0, same > NOISY, outside, other))
        cells += [f"{predicted:.2f}", f"{low:.2f}-{high:.2f}", f"{error:+.1%}", f"{said:+.1%}", f"{really:+.1%}"]
        cells += [f"{100 * (said - really):+.1f}", f"{naive:+.1%}", f"{launches:.2f}"]
    refused = sum(one.waits for one in found) - len(told)
    cells += ["no price" if refused else "no waits"] * (not told)
    outside = errors[-1].outside if told else 0
    more = f"  {refused} refused" * bool(refused) + f"  {outside} outside" * bool(outside)
    return f"{name:20}" + "".join(f"{cell:>13}" for cell in cells) + more + "  noisy" * (same > NOISY)


def _outside(one: Round, truth: tuple[float, float]) -> bool:
    """Whether the range of a price meets neither the truth by all rounds nor what its own round measured, give or take A/A."""
    low, high = 1 - one.high / one.step, 1 - one.low / one.step
    return not any(low <= b and high >= a for a, b in (truth, (one.saves - one.same, one.saves + one.same)))


def report(measured: Iterable[tuple[str, list[Round]]]) -> None:
    """The table, a row as soon as its loop has been measured, and what all rows say."""
    print(f"{'ms per step':20}" + "".join(f"{column:>13}" for column in COLUMNS), flush=True)
    errors: list[Errors] = []
    refused = prices = promised = broken = 0
    for name, found in measured:
        promised += sum(one.promised for one in found)
        broken += sum(one.promised and one.saves < -one.same for one in found)
        refused += sum(one.predicted is None and one.waits for one in found)
        prices += sum(one.predicted is not None for one in found)
        print(row(name, found, errors), flush=True)
    summary("all loops", errors)
    if any(one.noisy for one in errors):
        summary(f"those with A/A up to {NOISY:.0%}", [one for one in errors if not one.noisy])
    if any(one.other for one in errors):
        alike = [one for one in errors if not one.other]
        outside = sum(one.outside for one in alike)
        summary(f"those that launch as much without waits, {outside} prices outside", alike)
    outside = sum(one.outside for one in errors)
    print(f"recordings with a price: {prices}, {outside} of them outside; without: {refused}")
    print(f"that promise a shorter step (all of their range is): {promised}, where it is longer: {broken}")


def summary(of: str, errors: list[Errors]) -> None:
    """How far the prices of some loops were off, in the median and at worst."""
    print(f"{of}: {len(errors)}, wrong sign: {sum(one.sign for one in errors)}")
    for number, (what, unit) in enumerate((("the step", "%"), ("the share saved", "points"), ("by blocked time", "%"))):
        if sizes := sorted(100 * abs(one[number]) for one in errors):
            print(f"  {what}: {median(sizes):.1f} {unit} off in the median, {sizes[-1]:.1f} at worst")
