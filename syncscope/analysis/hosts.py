"""The host's side of a recording: its launches, its waits and the ends of its steps, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.waits import Launches, Wait
from syncscope.model.report import Step
from syncscope.model.trace import Kind, Trace

EVENT = 1_000.0  # ns that a profiler takes on the host for an event, about


class Host:
    """Launches, waits and ends of steps in the order in which the host came to them; `row` is -1 - m for the end of step m.

    `holds` says which of them are waits. `waited` is when the first wait for recorded work was over: until then the device
    may have been busy with what came before the recording.
    """

    def __init__(self, trace: Trace, launched: Launches, held: Sequence[Wait], steps: tuple[Step, ...]) -> None:
        calls = np.unique(np.concatenate([launched.call[launched.call >= 0], np.array([w.row for w in held], np.intp)]))
        calls = calls.astype(np.intp)
        marks = np.array([s.end for s in steps], np.int64)
        row = np.concatenate([calls, -1 - np.arange(len(marks))])
        begin = np.concatenate([trace.start[calls], marks])
        end = np.concatenate([trace.start[calls] + trace.duration[calls], marks])
        order = np.lexsort((row >= 0, begin))
        self.row, begin, end = row[order], begin[order], end[order]
        lonely = launched.row[launched.call < 0]
        self.origin = min(
            [int(x) for x in (*begin[:1], *(s.start for s in steps[:1]), *trace.start[lonely[:1]])], default=0
        )
        begin, end = (begin - self.origin).astype(float), (end - self.origin).astype(float)
        reach = np.concatenate(([0.0], np.maximum.accumulate(end)))[: len(end)]
        self.begin, self.end = begin, end
        self.gap = np.maximum(0.0, begin - reach)
        self.began = np.maximum(begin, reach)
        self.cost = np.maximum(0.0, end - self.began)
        self.holds = np.isin(self.row, np.array([w.row for w in held], np.intp))
        waits = np.isin(self.row, np.array([w.row for w in held if w.targets], np.intp))
        self.waited = float(end[waits].min(initial=np.inf))
        length = float((end - begin).sum())
        self.overlap = float((np.minimum(reach, end) - begin).clip(0.0).sum()) / length if length else 0.0


def recorded(trace: Trace) -> NDArray[np.intp]:
    """The events for which the host pays besides reads: operators, and where none were recorded, the driver's calls."""
    operators = trace.rows(Kind.OP)
    return operators if len(operators) else trace.rows(Kind.CALL)


def recorders_time(trace: Trace, host: Host, each: float) -> NDArray[np.float64]:
    """The recorder's own time in each gap of the host: so much for each event that began in it, at most the gap.

    A read, which is noted after it, costs as many times more as the recorder says.
    """
    if not each or not len(host.row):
        return np.zeros(len(host.row))
    events, reads = recorded(trace), trace.rows(Kind.READ)
    at = np.concatenate([trace.start[events], trace.end[reads]]) - host.origin
    cost = np.full(len(at), float(each))
    cost[len(events) :] *= max(1.0, float(trace.meta.get("read_ns", EVENT)) / EVENT)
    order = np.argsort(at, kind="stable")
    total = np.concatenate(([0.0], np.cumsum(cost[order])))[np.searchsorted(at[order], host.began)]
    time: NDArray[np.float64] = np.minimum(host.gap, np.diff(total, prepend=0.0))
    return time
