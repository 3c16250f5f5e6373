"""A small algebra of half-open intervals [start, end), as sorted numpy columns, ns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]


class Intervals(NamedTuple):
    """Intervals that neither touch nor overlap, in order: what `union` returns."""

    start: Times
    end: Times

    @property
    def length(self) -> int:
        """Sum of all of them."""
        return int((self.end - self.start).sum())


def distinct(values: Times) -> Times:
    """Each value once, in order: `np.unique` of what is made of a few sorted parts, in a fifth of its time."""
    values = np.sort(values, kind="stable")
    return values[np.append(True, values[1:] > values[:-1])] if len(values) else values


def union(start: Times, end: Times) -> Intervals:
    """The intervals that any of these cover; they may overlap and come in any order.

    ```text
    A------B
        C-----D    E--F
    A---------D    E--F
    ```
    """
    if not len(start):
        return Intervals(np.zeros(0, np.int64), np.zeros(0, np.int64))
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    first = np.concatenate(([True], start[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    kept = reach[last] > start[first]
    return Intervals(start[first][kept], reach[last][kept])


def gaps(intervals: Intervals) -> Intervals:
    """What lies between them."""
    return Intervals(intervals.end[:-1], intervals.start[1:])


def covered(intervals: Intervals, start: Times, end: Times) -> Times:
    """How much of each window [start, end) they cover, ns."""
    total = np.concatenate(([0], np.cumsum(intervals.end - intervals.start)))

    def before(t: Times) -> Times:
        at = np.searchsorted(intervals.start, t, side="right")
        inside = np.zeros(len(t), np.int64)
        some = at > 0
        inside[some] = np.maximum(intervals.end[at[some] - 1] - t[some], 0)
        share: Times = total[at] - inside
        return share

    start, end = np.asarray(start, np.int64), np.asarray(end, np.int64)
    result: Times = np.maximum(before(end) - before(start), 0)
    return result


def minus(one: Intervals, other: Intervals) -> Intervals:
    """What one covers and the other does not."""
    bounds = distinct(np.concatenate([*one, *other]))
    if len(bounds) < 2:
        return one
    start, end = bounds[:-1], bounds[1:]
    kept = (covered(one, start, end) > 0) & (covered(other, start, end) == 0)
    return union(start[kept], end[kept])
