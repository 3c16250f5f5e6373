"""An interval of a mean that holds at all times at once: it may be looked at after every turn, which end when it tells.

A 95 % interval of a fixed plan that is looked at again and again leaves the truth out far more often than once in twenty.
This one is made of the turns at which a test martingale of Student's t, with a normal prior on the effect in units of the
spread, stays below 1/alpha (Ville's inequality): exact for normal values of unknown spread, from the second value on.

Sources: Wang and Ramdas, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance", Sequential
Analysis 44, 2025; the Bayes factor is that of Goenen et al., "The Bayesian two-sample t test", American Statistician 59, 2005.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median

ALPHA = 0.05
PRIOR = 1.0  # variance of the effect, in squares of the spread of one value: narrowest after some tens of them
FIRM = 5  # values from which on it is known what is far off
FAR = 4.0  # spreads from the middle
SPREAD = 1.4826  # of a normal distribution, over the median of distances from its middle


def interval(values: Sequence[float], alpha: float = ALPHA) -> tuple[float, float, float]:
    """The mean of some values, and the ends of its interval, which may be infinite.

    The chance that the truth is ever outside, after whatever number of values, is at most `alpha`.

    Raises:
        ValueError: there is no value.
    """
    if not values:
        raise ValueError("no value has a mean")
    clipped = tamed(values)
    count, middle = len(clipped), fmean(clipped)
    if count < 2:
        return middle, -math.inf, math.inf
    variance = sum((value - middle) ** 2 for value in clipped) / (count - 1)
    most = _student(count, alpha)
    half = math.sqrt(variance / count) * most if most < math.inf else math.inf
    return middle, middle - half, middle + half


def _student(count: int, alpha: float) -> float:
    """How large Student's t of so many values must be before the martingale reaches 1/alpha; infinite where it never does."""
    freedom, more = count - 1, 1 + count * PRIOR
    most = math.exp(2 / count * math.log(math.sqrt(more) / alpha))
    return math.inf if most >= more else math.sqrt(freedom * (most - 1) / (1 - most / more))


def tamed(values: Sequence[float]) -> list[float]:
    """The values, none further off than what those before it allow: one pause of the machine is to move no mean.

    The limits are of earlier values alone, so that no value decides on its own weight, and are found anew whenever there are
    twice as many.
    """
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
