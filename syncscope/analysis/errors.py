"""How far a price may be off by chance: steps that should be alike are not, and so is what a wait costs each of them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.graph import Graph
from syncscope.analysis.price import timed_part
from syncscope.analysis.replay import replay_all
from syncscope.model.trace import StepLengths

Times = NDArray[np.float64]
NOTCH = 1.57  # of the quartiles, over the root of the number: half the 95 % interval of a median (McGill, 1978)
RANKED = 6  # values from which on their ranks tell a 95 % interval
AKIN = 0.8  # the correlation of neighbours from which on a few steps do not tell how few of them count


def margins(graph: Graph, sets: NDArray[np.bool_]) -> Times:
    """Half the 95 % interval of what a step saves without some reads, ns; a row of `sets` says of each read whether it goes.

    By the spread over the counted steps. Nothing is known of it from fewer than four recorded steps: then 0.
    """
    window = timed_part(graph)
    if window.first < 0 or not len(sets):
        return np.zeros(len(sets))
    rows = np.concatenate([np.zeros((1, sets.shape[1]), bool), sets])
    _, ends = replay_all(graph, rows)
    lengths = np.diff(ends[:, window.first : window.last + 1], axis=1)
    return np.array([half_interval(lengths[0] - row) for row in lengths[1:]])


def half_interval(values: Times) -> float:
    """Half the 95 % interval of the mean of some values, by Student's t; 0 of a single one."""
    freedom = len(values) - 1
    if freedom < 1:
        return 0.0
    return float(student(freedom) * values.std(ddof=1) / len(values) ** 0.5)


def student(freedom: float) -> float:
    """Student's quantile of a 95 % interval, within 7 %."""
    return 1.96 + 2.5 / freedom + 3 / freedom**2 + 5 / freedom**3


def centre(values: Times) -> tuple[float, float, float]:
    """The middle of some values and the ends of its 95 % interval: the median and the ranks of the means of all pairs.

    A few values that are far off do not move it. From fewer than six no ranks tell an interval: there it is Student's, and the
    middle the median. Source: Hodges and Lehmann, "Estimates of location based on rank tests", 1963; the ranks are Wilcoxon's.
    """
    count = len(values)
    if count < RANKED:
        middle, half = float(np.median(values)), half_interval(values)
        return middle, min(middle, float(values.mean()) - half), max(middle, float(values.mean()) + half)
    one, other = np.triu_indices(count)
    means = np.sort((values[one] + values[other]) / 2)
    outside = int(len(means) / 2 - 1.96 * math.sqrt(len(means) * (2 * count + 1) / 12))
    return float(np.median(means)), float(means[outside]), float(means[-1 - outside])


def half_interval_of_neighbours(values: Times) -> float:
    """The same of values that follow one another: where neighbours are alike, each tells less that is new.

    By the correlation of the first order, which is found too low by one over their number.
    """
    apart = values - values.mean()
    squares = float(apart @ apart)
    if not squares:
        return 0.0
    akin = min(AKIN, max(0.0, float(apart[1:] @ apart[:-1]) / squares + 1 / len(values)))
    return half_interval(values) * math.sqrt((1 + akin) / (1 - akin))


def half_interval_of_median(lengths: StepLengths) -> float:
    """Half the 95 % interval of the median of steps of which only the quartiles are known, ns."""
    measured = lengths.get("measured", lengths["steps"])
    return NOTCH * float(lengths["high_ns"] - lengths["low_ns"]) / math.sqrt(measured)
