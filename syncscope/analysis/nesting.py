"""Which events of a thread enclose a given moment: operators, Python frames, annotations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from syncscope.model.trace import Kind, Trace

BLOCK = 256  # events looked at together; a block whose latest end lies before the moment is skipped whole


class Nesting:
    """The host events of a trace by thread; answers for a few moments without building a tree of all events."""

    def __init__(self, trace: Trace, *kinds: Kind) -> None:
        self._trace = trace
        self._kinds = kinds
        self._lanes: dict[int, tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = {}
        rows = trace.rows(*kinds)
        order = np.argsort(trace.lane[rows], kind="stable")
        self._rows = rows[order]
        self._sorted_lanes = trace.lane[self._rows]

    def _of(self, lane: int) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        if lane not in self._lanes:
            first, last = np.searchsorted(self._sorted_lanes, [lane, lane + 1])
            rows = self._rows[first:last]
            start = self._trace.start[rows]
            end = start + self._trace.duration[rows]
            latest = np.maximum.reduceat(end, np.arange(0, len(end), BLOCK)) if len(end) else end
            self._lanes[lane] = rows, start, end, latest
        return self._lanes[lane]

    def around(self, lane: int, start: int, end: int) -> list[int]:
        """Rows of the events on a lane that enclose [start, end], outermost first."""
        rows, starts, ends, latest = self._of(lane)
        last = int(np.searchsorted(starts, start, side="right"))
        found: list[int] = []
        for block in np.flatnonzero(latest[: -(-last // BLOCK)] >= end).tolist():
            part = slice(block * BLOCK, min(last, (block + 1) * BLOCK))
            found += rows[part][ends[part] >= end].tolist()
        return found
