"""From moments to reads: a wait that was told of after its call gets the operator that made it.

```text
host      [aten::to ...]  ^mark       becomes   [to ........... ]
host      [loss.backward() ......] ^  no operator of its own: those of other threads since the last one are meant
autograd     [Index .. [aten::index_put_]]         [index_put_]
```
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from syncscope.model.trace import Event, Kind, Trace
from syncscope.tracers.columns import Builder

MARK = "sync"
SLACK = 5000  # ns by which the clocks of the mark and the operator may disagree
OPERATOR = re.compile(r"^(?!autograd::)\w+::")  # the autograd engine's own regions run operators and are none
WAITS = re.compile(r"Synchronize|Memcpy")


def placed(trace: Trace) -> Trace:
    """The trace with each MARK grown to its operator, and dropped where a read is known there; one without any stays."""
    marks = np.flatnonzero((trace.kind == Kind.READ) & _named(trace, re.compile(f"^{MARK}$")))
    if not len(marks):
        return trace
    operators = _Operators(trace, marks)
    found: list[Event] = []
    done: set[int] = set()
    for mark in marks.tolist():
        event = trace[mark]
        lane, now = int(trace.lane[mark]), event.start + SLACK
        last = operators.last(lane, now)
        own = last >= 0 and operators.waits(last)
        meant = [last] if own else operators.elsewhere(lane, int(operators.end[last]) if last >= 0 else 0, now)
        if not meant:
            found.append(event)
        for row in meant:
            if row in done or operators.known(row):
                continue
            done.add(row)
            start, end = int(operators.start[row]), int(operators.end[row])
            name = trace.names[trace.name[row]].removeprefix("aten::")
            lane_of = trace.lanes[trace.lane[row]]
            stop = max(end, event.start) if own else end
            found.append(replace(event, name=name, lane=lane_of, start=start, duration=stop - start))
    builder = Builder()
    others = np.ones(len(trace), bool)
    others[marks] = False
    builder.add_trace(trace.take(others))
    builder.add_events(found)
    return builder.trace(**trace.meta)


class _Operators:
    """The outermost operators of each host thread, which of them wait, and which lie in a read that is known."""

    def __init__(self, trace: Trace, marks: NDArray[np.intp]) -> None:
        self._lane, self.start, self.end = trace.lane, trace.start, trace.end
        host = np.array([lane.device < 0 for lane in trace.lanes], bool)[trace.lane]
        kinds = {Kind.OP: OPERATOR, Kind.CALL: WAITS, Kind.READ: re.compile("")}
        chosen = {
            kind: np.flatnonzero((trace.kind == kind) & host & _named(trace, names)) for kind, names in kinds.items()
        }
        chosen[Kind.READ] = np.setdiff1d(chosen[Kind.READ], marks)
        lanes = np.unique(trace.lane[host])
        self._of = {int(lane): {k: rows[trace.lane[rows] == lane] for k, rows in chosen.items()} for lane in lanes}
        for rows in self._of.values():
            rows[Kind.OP] = _outermost(trace, rows[Kind.OP])

    def last(self, lane: int, now: int) -> int:
        """The last operator of a thread that had ended then; -1: none."""
        rows = self._of[lane][Kind.OP]
        at = int(np.searchsorted(self.end[rows], now, side="right")) - 1
        return int(rows[at]) if at >= 0 else -1

    def elsewhere(self, lane: int, since: int, now: int) -> list[int]:
        """The waiting operators of other threads between two moments."""
        found: list[int] = []
        for other, kinds in self._of.items():
            rows = kinds[Kind.OP]
            if other != lane:
                found += rows[(self.start[rows] >= since) & (self.end[rows] <= now)].tolist()
        return [row for row in found if self.waits(row)]

    def waits(self, row: int) -> bool:
        """Whether there is a call of the driver in this operator that may wait."""
        calls = self.start[self._of[int(self._lane[row])][Kind.CALL]]
        first, last = np.searchsorted(calls, (self.start[row], self.end[row]))
        return bool(last > first)

    def known(self, row: int) -> bool:
        """Whether a read was noted around this operator."""
        reads = self._of[int(self._lane[row])][Kind.READ]
        return bool(((self.start[reads] <= self.start[row] + SLACK) & (self.end[reads] >= self.end[row] - SLACK)).any())


def _named(trace: Trace, names: re.Pattern[str]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.array([bool(names.search(name)) for name in trace.names], bool)[trace.name]
    return found


def _outermost(trace: Trace, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    if not len(rows):
        return rows
    reached = np.maximum.accumulate(trace.end[rows])
    found: NDArray[np.intp] = rows[np.append(True, trace.start[rows][1:] >= reached[:-1])]
    return found
