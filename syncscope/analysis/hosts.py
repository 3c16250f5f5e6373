"""The host's side of a recording: its launches, its waits and the ends of its steps, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from syncscope.analysis.waits import Launches, Wait
from syncscope.model.report import Step
from syncscope.model.trace import Trace


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
