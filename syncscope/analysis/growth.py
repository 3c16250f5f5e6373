"""What of a piece of work grows with the rows that a selection keeps, as far as its steps tell: they keep now more, now fewer.

A kernel that is launched with more blocks where more rows are kept works on rows: all of it grows. One whose launch is alike
all the time prepares weights, say, or adds over rows: how its time goes with the number of rows tells which, and where that is
lost in noise, less than half of it grows (`ALIKE`, as seen on a GPU and on PoCL).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from syncscope.model.trace import Trace

FEWEST = 3  # steps that tell, and numbers of rows
APART = 6  # pieces of work between two that are launched by rows, at most, for those between to be of the same pass
SPREAD = 0.05  # of the rows kept: from so much on, a launch that is alike says something
SHORTEST = 0.01  # of the pieces of work of a kind
LEAST = 0.05  # of the mean of the rows kept: fewer count as so many
ALIKE = 0.4, 0.3  # the part that grows of a launch that is alike, and how sure that is (a standard deviation)
Times = NDArray[np.float64]


def growth(trace: Trace, work: Sequence[NDArray[np.intp]], kept: Sequence[int]) -> list[tuple[Times, Times]]:
    """The part (0 to 1) of each piece of `work` (rows of the trace, of one selection each) that grows with its rows.

    And how long each usually takes over as many rows, ns: what held one of them up once would not grow with the rows.
    Selections of the same kernels are of the same line, in different steps.
    """
    alike = defaultdict(list)
    for number, rows in enumerate(work):
        alike[trace.name[rows].tobytes()].append(number)
    found: list[tuple[Times, Times]] = [(np.ones(0), np.ones(0))] * len(work)
    for numbers in alike.values():
        rows, counts = np.array([work[n] for n in numbers]), np.array([kept[n] for n in numbers], float)
        part = _of_line(trace, rows, counts)
        by_rows = 1 + np.outer((counts / max(1.0, counts.mean())).clip(LEAST) - 1, part)
        usual = np.median(trace.duration[rows] / by_rows, axis=0) * by_rows
        for number, of in zip(numbers, usual, strict=True):
            found[number] = part, of
    return found


def shortest(trace: Trace, work: NDArray[np.intp]) -> Times:
    """How long the shortest pieces of the kind of each of these (rows of the trace) take, ns: a kernel needs longer to begin
    and to end than a fill does."""
    found = np.zeros(len(work))
    kinds, durations = trace.kind[work], trace.duration[work]
    for kind in np.unique(kinds).tolist():
        found[kinds == kind] = np.quantile(durations[kinds == kind], SHORTEST)
    return found


def launched_by_rows(trace: Trace, work: Sequence[NDArray[np.intp]], kept: Sequence[int]) -> list[NDArray[np.bool_]]:
    """Which pieces of `work` (rows of the trace: all after a selection in its step) work on the rows that it kept.

    Those that were launched with more threads in each step in which it kept more, and what was launched between two of them: a
    gradient of weights adds over rows, with as many threads whatever their number.
    """
    alike = defaultdict(list)
    for number, rows in enumerate(work):
        alike[trace.name[rows].tobytes()].append(number)
    found = [np.zeros(len(rows), bool) for rows in work]
    for numbers in alike.values():
        if len({kept[n] for n in numbers}) < FEWEST:
            continue
        order = sorted(numbers, key=lambda n: kept[n])
        more = np.diff([kept[n] for n in order]) > 0
        steps = np.diff(np.array([_threads(trace, work[n]) for n in order]), axis=0)
        by_rows = (steps[more] >= 0).all(axis=0) & (steps[~more] == 0).all(axis=0) & (steps > 0).any(axis=0)
        at = np.flatnonzero(by_rows)
        for first, last in pairwise(at.tolist()):
            by_rows[first:last] |= last - first <= APART + 1
        for number in numbers:
            found[number] = by_rows
    return found


def _threads(trace: Trace, rows: NDArray[np.intp]) -> Times:
    """With how many threads each piece was launched, 0 where that is not known."""
    launches = [trace.known(row) for row in rows.tolist()]
    return np.array([math.prod(one.grid) * math.prod(one.block) if one.grid else 0 for one in launches], float)


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
