"""An interval of a mean that holds at all times at once: it may be looked at after every turn, which end when it tells.

A 95 % interval of a fixed plan that is looked at again and again leaves the truth out far more often than once in twenty.
This one is made of the turns at which a test martingale of Student's t, with a normal prior on the effect in units of the
spread, stays below 1/alpha (Ville's inequality): exact for normal values of unknown spread, from the second value on.

It is half as wide again as that of a fixed plan. But where the time is up, there is a fixed plan: so of the 5 % that may go
wrong, 2 are for all looks meanwhile, and 3 for the last one, in which Student's interval holds, too (Bonferroni).

Sources: Wang and Ramdas, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance", Sequential
Analysis 44, 2025; the Bayes factor is that of Goenen et al., "The Bayesian two-sample t test", American Statistician 59, 2005;
the quantile is Hill's, "Algorithm 396: Student's t-quantiles", Communications of the ACM 13, 1970.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, median

MEANWHILE, LAST = 0.02, 0.03  # of the chance that the truth is left out
PRIOR = 1.0  # variance of the effect, in squares of the spread of one value: narrowest after some tens of them
FIRM = 5  # values from which on it is known what is far off
FAR = 3.0  # spreads from the middle
SPREAD = 1.4826  # of a normal distribution, over the median of distances from its middle


def interval(values: Sequence[float], is_last: bool = False) -> tuple[float, float, float]:
    """The mean of some values, and the ends of its interval, which may be infinite.

    The chance that the truth is ever outside, after whatever number of values and in the last look, is at most 5 %. `is_last`:
    there were to be no more than these, whatever they said.

    Raises:
        ValueError: there is no value.
    """
    if not values:
        raise ValueError("no value has a mean")
    count, middle = len(values), fmean(values)
    if count < 2:
        return middle, -math.inf, math.inf
    variance = sum((value - middle) ** 2 for value in values) / (count - 1)
    most = _at_all_times(count, MEANWHILE)
    if is_last and count >= FIRM:
        most = min(most, _student(count - 1, LAST))
    half = math.sqrt(variance / count) * most if most < math.inf else math.inf
    return middle, middle - half, middle + half


def _at_all_times(count: int, alpha: float) -> float:
    """How large Student's t of so many values must be before the martingale reaches 1/alpha; infinite where it never does."""
    freedom, more = count - 1, 1 + count * PRIOR
    most = math.exp(2 / count * math.log(math.sqrt(more) / alpha))
    return math.inf if most >= more else math.sqrt(freedom * (most - 1) / (1 - most / more))


def _student(freedom: int, alpha: float) -> float:
    """Student's t that is passed, on either side, in one of 1/alpha cases; within 1 % from four degrees of freedom on."""
    z = NormalDist().inv_cdf(1 - alpha / 2)
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


def tamed(values: Sequence[float]) -> list[float]:
    """The values, none further off than what those before it allow, as in `turns`: of pairs that are alike."""
    kept: list[float] = []
    low, high, renewed = -math.inf, math.inf, FIRM
    for number, value in enumerate(values):
        if number == renewed:
            before = values[:number]
            middle = median(before)
            off = FAR * SPREAD * median(abs(other - middle) for other in before)
            low, high = (middle - off, middle + off) if off else (low, high)
            renewed *= 2
        kept.append(min(max(value, low), high))
    return kept
