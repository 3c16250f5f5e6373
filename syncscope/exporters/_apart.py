"""Events of the host for a viewer that adds times as floats: what follows stays behind, what lies within stays within.

torch-tb-profiler takes the end of an event for the sum of two floats of microseconds. Where a step ends with the nanosecond in
which the next begins, the sum may lie behind that beginning: it then prints that ranges intersect, and leaves the later one
out of its tree. So an event is made shorter by as little as prevents that: a nanosecond, of times since 1970 some hundreds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from syncscope.model.trace import Kind, Trace

IN_ITS_TREE = (Kind.STEP, Kind.OP, Kind.ANNOTATION)
PASSES = 4  # as making one event shorter may leave another one behind its end


def apart(trace: Trace) -> Trace:
    """The trace with these events as long as keeps them apart, and within one another."""
    duration = trace.duration.copy()
    rows = np.flatnonzero(np.isin(trace.kind, IN_ITS_TREE))
    for lane in np.unique(trace.lane[rows]):
        of_lane = rows[trace.lane[rows] == lane]
        starts, durations = trace.start[of_lane].tolist(), duration[of_lane].tolist()
        whole = [start + length for start, length in zip(starts, durations, strict=True)]
        for _ in range(PASSES):
            if not _shorter(starts, durations, whole):
                break
        duration[of_lane] = durations
    return replace(trace, duration=duration)


def _shorter(starts: Sequence[int], durations: list[int], ends: Sequence[int]) -> bool:
    """Makes events shorter where the sums of floats intersect and the events do not, whose `ends` are exact; whether any is."""
    begins = [_us(start) for start in starts]
    sums = [begin + _us(length) for begin, length in zip(begins, durations, strict=True)]
    order = sorted(range(len(starts)), key=lambda n: (begins[n], -sums[n]))
    around: list[int] = []
    changed = False

    def cut(number: int, most: float) -> None:
        """Make one end no later than that."""
        nonlocal changed
        while sums[number] > most and durations[number] > 0:
            durations[number] = max(0, durations[number] - max(1, int(1000 * (sums[number] - most))))
            sums[number] = begins[number] + _us(durations[number])
            changed = True

    for each in order:
        while around:
            last = around[-1]
            if begins[each] < sums[last] and starts[each] >= ends[last]:
                cut(last, begins[each])
            if begins[each] < sums[last]:
                if ends[each] <= ends[last]:
                    cut(each, sums[last])
                break
            around.pop()
        around.append(each)
    return changed


def _us(ns: int) -> float:
    """Microseconds as a reader of the JSON has them."""
    return ns // 1000 if ns % 1000 == 0 else ns / 1000
