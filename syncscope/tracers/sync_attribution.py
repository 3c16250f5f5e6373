"""From moments to reads: a wait that was told of after its call gets the operator that made it.

```text
host      [aten::to ...]  ^mark       becomes   [to ........... ]
host      [loss.backward() ......] ^  no operator of its own: those of other threads since the last one are meant
autograd     [Index .. [aten::index_put_]]         [index_put_]
```
Where no operators were recorded, the driver's calls that wait stand for them, each with the copy before it. One wait of a
backward pass is known then, too: the gradient of `x[mask]` goes back to its rows, and the kernel that puts it there says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from syncscope.model.detail import Detail
from syncscope.model.ops import Op
from syncscope.model.trace import Event, Kind, Trace
from syncscope.tracers.columns import Builder

MARK = Op.SYNC
SLACK = 5000  # ns by which the clocks of the mark and the operator may disagree
OPERATOR = re.compile(r"^(?!autograd::)\w+::")  # the autograd engine's own regions run operators and are none
# torch makes every copy that waits of an asynchronous one and the first
WAITS = re.compile(r"Synchronize|MemcpyWithStream")
PUT_BACK = re.compile(r"indexing_backward|index_put")  # a kernel of aten::index_put_
COUNTING = re.compile(r"\bcub\b|cub::|rocprim")  # kernels of the nonzero() in it, which counts before it waits
ENGINE = "torch/autograd/graph.py"  # whose line tells of the waits of a backward pass


def placed(trace: Trace) -> Trace:
    """The trace with each MARK grown to its operator, and dropped where a read is known there; one without any stays."""
    marks = np.flatnonzero((trace.kind == Kind.READ) & _named(trace, re.compile(f"^{MARK}$")))
    if not len(marks):
        return trace
    operators = _Operators(trace, marks)
    found: list[Event] = []
    done: set[int] = set()
    for mark, count, since in operators.groups(marks):
        event = trace[mark]
        lane, now = int(trace.lane[mark]), event.start + SLACK
        engine = Detail.of(event.detail).library.startswith(ENGINE)
        own = [] if engine else operators.own(lane, since, now, count)
        meant = operators.elsewhere(lane, now) if engine else own
        meant = [row for row in meant if row not in done]
        if not meant:
            found.append(event)
        done.update(meant)
        if not operators.recorded and not engine:
            meant = [row for row in meant if not operators.known(row)]
            if meant:
                start = int(operators.start[meant[0]])
                found.append(
                    replace(event, start=start, duration=max(event.end, int(operators.end[meant[-1]])) - start)
                )
            continue
        for row in meant:
            if operators.known(row):
                continue
            start, end = int(operators.start[row]), int(operators.end[row])
            name = trace.names[trace.name[row]].removeprefix("aten::") if operators.recorded else str(MARK)
            if not operators.recorded and (put := operators.put_back(row)) is not None:
                name, start, end = "index_put_", *put
            lane_of = trace.lanes[trace.lane[row]]
            stop = max(end, event.start) if [row] == own[-1:] else end
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
        self._lane, self.start, self.end = trace.lane, trace.start.copy(), trace.end
        host = np.array([lane.device < 0 for lane in trace.lanes], bool)[trace.lane]
        kinds = {Kind.OP: OPERATOR, Kind.CALL: WAITS, Kind.READ: re.compile("")}
        chosen = {
            kind: np.flatnonzero((trace.kind == kind) & host & _named(trace, names)) for kind, names in kinds.items()
        }
        chosen[Kind.READ] = np.setdiff1d(chosen[Kind.READ], marks)
        lanes = np.unique(trace.lane[host])
        self._of = {int(lane): {k: rows[trace.lane[rows] == lane] for k, rows in chosen.items()} for lane in lanes}
        # of OTHER: whatever a thread did
        self.recorded = len(chosen[Kind.OP]) > 0
        calls = np.flatnonzero((trace.kind == Kind.CALL) & host)
        kernels = trace.rows(Kind.KERNEL) if not self.recorded else np.zeros(0, np.intp)
        self._correlation = trace.correlation
        self._launched = dict(zip(trace.correlation[kernels].tolist(), trace.name[kernels].tolist(), strict=True))
        self._names = trace.names
        for lane, rows in self._of.items():
            if self.recorded:
                rows[Kind.OP] = rows[Kind.OTHER] = _outermost(trace, rows[Kind.OP])
                continue
            rows[Kind.OP], rows[Kind.OTHER] = rows[Kind.CALL], calls[trace.lane[calls] == lane]
            before = np.searchsorted(rows[Kind.OTHER], rows[Kind.CALL]) - 1
            for row, copy in zip(rows[Kind.CALL].tolist(), rows[Kind.OTHER][before].tolist(), strict=True):
                if copy < row and "Memcpy" in trace.names[trace.name[copy]]:
                    self.start[row] = trace.start[copy]

    def groups(self, marks: NDArray[np.intp]) -> Iterator[tuple[int, int, int]]:
        """The marks of one call (their thread began nothing in between): the last, how many, when the call before ended."""
        for lane in np.unique(self._lane[marks]).tolist():
            rows = marks[self._lane[marks] == lane]
            begun = np.searchsorted(self.start[self._of[lane][Kind.OTHER]], self.start[rows])
            _, first, counts = np.unique(begun, return_index=True, return_counts=True)
            last = rows[first + counts - 1]
            since = np.append(0, self.start[last][:-1])
            yield from zip(last.tolist(), counts.tolist(), since.tolist(), strict=True)

    def own(self, lane: int, since: int, now: int, count: int) -> list[int]:
        """The last `count` waiting operators that a thread ended between two moments."""
        rows = self._of[lane][Kind.OP]
        rows = rows[(self.end[rows] > since) & (self.end[rows] <= now)]
        return [row for row in rows.tolist() if self.waits(row)][-count:]

    def elsewhere(self, lane: int, now: int) -> list[int]:
        """The waiting operators of other threads since this one's last operator."""
        rows = self._of[lane][Kind.OTHER]
        since = int(self.end[rows][self.end[rows] <= now].max(initial=0))
        found: list[int] = []
        for other, kinds in self._of.items():
            rows = kinds[Kind.OP]
            if other != lane:
                found += rows[(self.start[rows] >= since) & (self.end[rows] <= now)].tolist()
        return [row for row in found if self.waits(row)]

    def put_back(self, row: int) -> tuple[int, int] | None:
        """Begin and end of the index_put_ in which this call waits, by the kernels of its thread; None if it is another's."""
        calls = self._of[int(self._lane[row])][Kind.OTHER]
        at = int(np.searchsorted(calls, row))
        waiting = self._of[int(self._lane[row])][Kind.CALL]
        later = waiting[waiting > row]
        upto = int(np.searchsorted(calls, later[0])) if len(later) else len(calls)
        last = next((n for n in range(at + 1, upto) if PUT_BACK.search(self._kernel(calls[n]))), None)
        if last is None:
            return None
        start = int(self.start[row])
        for n in range(at - 1, -1, -1):
            if int(self.start[calls[n]]) < start and not COUNTING.search(self._kernel(calls[n])):
                break
            start = min(start, int(self.start[calls[n]]))
        return start, int(self.end[calls[last]])

    def _kernel(self, call: int) -> str:
        row = self._launched.get(int(self._correlation[call]))
        return "" if row is None else self._names[row]

    def waits(self, row: int) -> bool:
        """Whether there is a call of the driver in this operator that may wait."""
        if not self.recorded:
            return True
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
