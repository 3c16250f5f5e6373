"""What a host does between two moments, by operator: the time in which each is the innermost event of its thread.

```text
host   (backward            )   (step        )
          (mm   ) [launch]         (add)         backward 7, mm 6, step 9, add 3; the launch is nobody's
```
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from syncscope.model.trace import Kind, Trace

OUTSIDE = ""  # of every operator and annotation: Python, and what it calls
_LEAST = 0.01  # of the host's work between two moments
_CALL = -1

Spent = tuple[tuple[str, float], ...]
"""Operators and ns, the longest first."""


def spent(trace: Trace, spans: Sequence[tuple[int, int, int]]) -> list[Spent]:
    """For each span (a lane, and from when until when, ns): how long its host was in each operator or annotation itself, calls
    of the driver left out, and how long `OUTSIDE` of all; what is less than a hundredth is left out."""
    known = {lane: _innermost(trace, lane) for lane in {lane for lane, _, _ in spans}}
    found = []
    for lane, since, until in spans:
        starts, ends, names = known[lane]
        first, last = np.searchsorted(ends, since, "right"), np.searchsorted(starts, until, "left")
        lengths = np.minimum(ends[first:last], until) - np.maximum(starts[first:last], since)
        times: dict[str, float] = defaultdict(float)
        times[OUTSIDE] = max(0.0, float(until - since - lengths.sum()))
        for name, length in zip(names[first:last].tolist(), lengths.tolist(), strict=True):
            if name != _CALL:
                times[trace.names[name]] += length
        least = _LEAST * sum(times.values())
        kept = [(name, time) for name, time in times.items() if time > least]
        found.append(tuple(sorted(kept, key=lambda each: -each[1])))
    return found


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
