"""What of a piece of work grows with the rows that a selection keeps, as far as its steps tell: they keep now more, now fewer.

A kernel that is launched with more blocks where more rows are kept works on rows: all of it grows. One whose launch is alike
all the time prepares weights, say, or adds over rows: how its time goes with the number of rows tells which, and where that is
lost in noise, less than half of it grows (`ALIKE`, as seen on a GPU and on PoCL).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from syncscope.model.trace import Trace

FEWEST = 3  # steps that tell
SPREAD = 0.05  # of the rows kept: from so much on, a launch that is alike says something
ALIKE = 0.4, 0.3  # the part that grows of a launch that is alike, and how sure that is (a standard deviation)
Times = NDArray[np.float64]


def growth(trace: Trace, work: Sequence[NDArray[np.intp]], kept: Sequence[int]) -> list[Times]:
    """The part (0 to 1) of each piece of `work` (rows of the trace, of one selection each) that grows with its rows.

    Selections of the same kernels are of the same line, in different steps.
    """
    alike = defaultdict(list)
    for number, rows in enumerate(work):
        alike[trace.name[rows].tobytes()].append(number)
    parts = [np.ones(len(rows)) for rows in work]
    for numbers in alike.values():
        found = _of_line(trace, np.array([work[n] for n in numbers]), np.array([kept[n] for n in numbers], float))
        for number in numbers:
            parts[number] = found
    return parts


def _of_line(trace: Trace, rows: NDArray[np.intp], kept: Times) -> Times:
    """The same for one line: `rows` has a row for each of its steps, which kept so many."""
    part = np.ones(rows.shape[1])
    if len(kept) < FEWEST or not kept.mean() or np.ptp(kept) < SPREAD * kept.mean():
        return part
    launches = trace.detail[rows]
    alike = (launches == launches[0]).all(axis=0) & (launches[0] >= 0)
    more = kept / kept.mean() - 1
    longer = trace.duration[rows] / np.maximum(1.0, trace.duration[rows].mean(axis=0)) - 1
    square = float((more**2).sum())
    slope = more @ longer / square
    error = ((longer - np.outer(more, slope)) ** 2).sum(axis=0) / (len(kept) - 1) / square
    weight = ALIKE[1] ** 2 / (ALIKE[1] ** 2 + error)
    part[alike] = (weight * slope + (1 - weight) * ALIKE[0])[alike].clip(0.0, 1.0)
    return part
