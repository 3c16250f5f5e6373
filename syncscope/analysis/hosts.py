"""The host's side of a recording: its launches, its waits and the ends of its steps, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.intervals import distinct
from syncscope.analysis.waits import Launches, Wait
from syncscope.model.report import Step
from syncscope.model.trace import Kind, Trace

DRIVEN = 50_000.0  # ns of the host before a call that a recorder may slow down, at most
OPERATOR = 100_000.0  # ns of the host before a launch that are the launching operator's, at most
Times = NDArray[np.float64]


class Host:
    """Launches, waits and ends of steps in the order in which the host came to them; `row` is -1 - m for the end of step m.

    `holds` says which of them are waits. `waited` is when the first wait for recorded work was over: until then the device
    may have been busy with what came before the recording.
    """

    def __init__(self, trace: Trace, launched: Launches, held: Sequence[Wait], steps: tuple[Step, ...]) -> None:
        calls = distinct(np.concatenate([launched.call[launched.call >= 0], np.array([w.row for w in held], np.intp)]))
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
        self.holds, waits = (
            self._rows(trace, [w.row for w in chosen]) for chosen in (held, [w for w in held if w.targets])
        )
        self.waited = float(end[waits].min(initial=np.inf))
        length = float((end - begin).sum())
        self.overlap = float((np.minimum(reach, end) - begin).clip(0.0).sum()) / length if length else 0.0

    def _rows(self, trace: Trace, rows: list[int]) -> NDArray[np.bool_]:
        """Which items are these calls."""
        chosen = np.zeros(len(trace), bool)
        chosen[rows] = True
        found: NDArray[np.bool_] = (self.row >= 0) & chosen[np.maximum(self.row, 0)] if len(trace) else self.row >= 0
        return found


def recorded(trace: Trace) -> NDArray[np.intp]:
    """The events for which the host pays besides reads: operators, and where none were recorded, the driver's calls."""
    operators = trace.rows(Kind.OP)
    return operators if len(operators) else trace.rows(Kind.CALL)


class Recorder(NamedTuple):
    """What being recorded took of the host's time.

    `each` is ns for each recorded event, at most the gap in which it began: what a profiler of operators takes. `notes` is the
    part of the time that the recorder measured for noting reads, in the gaps after them. `share` is the part of the rest: of
    calls of the driver, and of the host's work up to a call, as far as it is for that call (`DRIVEN`): a driver that is
    listened to does all of it more slowly.
    """

    each: float = 0.0
    notes: float = 0.0
    share: float = 0.0

    def gaps(self, trace: Trace, host: Host) -> Times:
        """The gaps of the host without the recorder, ns."""
        gaps = host.gap
        if self.each and len(gaps):
            events = trace.start[recorded(trace)] - host.origin
            gaps = np.maximum(0.0, gaps - self.each * _in_gaps(host, events))
        if self.notes and len(gaps):
            reads = trace.end[trace.rows(Kind.READ)] - host.origin
            gaps = np.maximum(0.0, gaps - self.notes * float(trace.meta.get("read_ns", 0.0)) * _in_gaps(host, reads))
        without: Times = gaps - self.share * np.minimum(gaps, DRIVEN)
        return without


def _in_gaps(host: Host, times: NDArray[np.int64]) -> Times:
    """How many of these moments, ns since the origin, lie in each gap of the host, or in the call before it."""
    by_then = np.searchsorted(np.sort(times), host.began)
    counts: Times = np.diff(by_then, prepend=0).astype(float)
    return counts
