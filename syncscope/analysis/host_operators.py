"""What a host does between two moments, by operator: the time in which each is the innermost event of its thread.

```text
host   (backward            )   (step        )
          (mm   ) [launch]         (add)         backward 7, mm 6, step 9, add 3; the launch is nobody's
```
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from syncscope.analysis.intervals import Intervals, union
from syncscope.model.trace import Kind, Trace

OUTSIDE = ""  # of every operator and annotation: Python, and what it calls
ENGINE = "autograd::engine"
"""How torch calls what runs a node of the graph."""
_LEAST = 0.01  # of the host's work between two moments
_CALL = -1

Spent = tuple[tuple[str, float], ...]
"""Operators and ns, the longest first."""


class OwnTime(NamedTuple):
    """How often an operator is run within the `backward` pass, or outside of it, and how long that is in it itself, ns."""

    backward: bool
    name: str
    runs: int
    own: float


class HostOperators:
    """What the threads of a recording are in, each looked at once."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._known: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def _of(self, lane: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if lane not in self._known:
            self._known[lane] = _innermost(self._trace, lane)
        return self._known[lane]

    def spent(self, spans: Sequence[tuple[int, int, int]]) -> list[Spent]:
        """For each span (a lane, and from when until when, ns): how long its host was in each operator or annotation itself,
        calls of the driver left out, and how long `OUTSIDE` of all; what is less than a hundredth is left out."""
        found = []
        for lane, since, until in spans:
            starts, ends, names = self._of(lane)
            first, last = np.searchsorted(ends, since, "right"), np.searchsorted(starts, until, "left")
            lengths = np.minimum(ends[first:last], until) - np.maximum(starts[first:last], since)
            times: dict[str, float] = defaultdict(float)
            times[OUTSIDE] = max(0.0, float(until - since - lengths.sum()))
            for name, length in zip(names[first:last].tolist(), lengths.tolist(), strict=True):
                if name != _CALL:
                    times[self._trace.names[name]] += length
            least = _LEAST * sum(times.values())
            kept = [(name, time) for name, time in times.items() if time > least]
            found.append(tuple(sorted(kept, key=lambda each: -each[1])))
        return found

    def own_times(self, lanes: Iterable[int]) -> tuple[OwnTime, ...]:
        """How long these threads are in each operator itself, in all."""
        trace, most = self._trace, len(self._trace.names)
        engine = np.array([name.startswith(ENGINE) for name in trace.names], bool)
        own, count = np.zeros((2, most)), np.zeros((2, most), int)
        for lane in lanes:
            rows = trace.rows(Kind.OP)
            rows = rows[trace.lane[rows] == lane]
            nodes = rows[engine[trace.name[rows]]]
            passes = union(trace.start[nodes], trace.end[nodes])
            starts, ends, names = self._of(lane)
            starts, ends, names = (each[names != _CALL] for each in (starts, ends, names))
            within = [_inside(passes, moments) for moments in (trace.start[rows], starts)]
            for backward in (0, 1):
                count[backward] += np.bincount(trace.name[rows[within[0] == backward]], minlength=most)
                these = within[1] == backward
                own[backward] += np.bincount(names[these], (ends - starts)[these], most)
        return tuple(
            OwnTime(bool(backward), trace.names[name], int(count[backward, name]), float(own[backward, name]))
            for backward, name in zip(*np.nonzero(count), strict=True)
        )


def _inside(spans: Intervals, moments: np.ndarray) -> np.ndarray:
    """Which moments lie in one of these spans, which are in order and apart."""
    at = np.searchsorted(spans.start, moments, side="right") - 1
    ends = np.concatenate((spans.end, [np.iinfo(np.int64).min]))  # of none before the first
    return moments < ends[at]


def _innermost(trace: Trace, lane: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The parts of a lane's time in which one event is the innermost: start and end of each, and its name, or `_CALL`."""
    rows = trace.rows(Kind.OP, Kind.ANNOTATION, Kind.CALL)
    rows = rows[trace.lane[rows] == lane]
    rows = rows[np.lexsort((-trace.duration[rows], trace.start[rows]))]
    names = np.where(trace.kind[rows] == Kind.CALL, _CALL, trace.name[rows])
    parts: list[tuple[int, int, int]] = []
    around: list[tuple[int, int]] = []  # end and name of those that are open, the innermost last
    at = 0

    def until(moment: int) -> None:
        nonlocal at
        while around and around[-1][0] <= moment:
            end, name = around.pop()
            if end > at:
                parts.append((at, end, name))
                at = end
        if around and moment > at:
            parts.append((at, moment, around[-1][1]))
        at = max(at, moment)

    ends = trace.start[rows] + trace.duration[rows]
    for start, end, name in zip(trace.start[rows].tolist(), ends.tolist(), names.tolist(), strict=True):
        until(start)
        around.append((end, name))
    if around:
        until(max(end for end, _ in around))
    table = np.array(parts, np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]
