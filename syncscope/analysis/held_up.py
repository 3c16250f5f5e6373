"""What held each event up: from the causes that the replay knows, for whoever asks of one event.

```text
host   --[launch a]--[ wait for A ....]--[launch b]
queue        [=======A=====]                   [==B==]

B by its launch, that by the wait before it, the wait by A, A by its launch
```
"""

from __future__ import annotations

import numpy as np

from syncscope.analysis.event_graph import EventGraph
from syncscope.analysis.intervals import distinct
from syncscope.analysis.start_causes import Cause
from syncscope.model.held_up import HeldUp, Why
from syncscope.model.trace import Trace

CODE = {why: code for code, why in enumerate(Why)}
OF = {
    Cause.LAUNCH: Why.LAUNCH,
    Cause.QUEUE: Why.QUEUE,
    Cause.TOLD: Why.TOLD,
    Cause.INFERRED: Why.INFERRED,
    Cause.FULL: Why.FULL,
    Cause.BEFORE: Why.BEFORE,
    Cause.NOTHING: Why.NOTHING,
}


def held_up(trace: Trace, event_graph: EventGraph) -> HeldUp:
    """Of work why it began no sooner, of a wait what it was for, of a launch in which wait the host had been before."""
    work, host, reads, launched = event_graph.device_work, event_graph.host, event_graph.reads, event_graph.launched
    events = len(trace)
    why, by = np.zeros(events + len(reads), np.uint8), np.full(events + len(reads), -1, np.int64)

    calls = distinct(launched.call[launched.call >= 0])
    waits = np.array([number for number, read in enumerate(reads) if read.blocked > 0 and read.calls], np.int64)
    over = trace.end[[reads[number].calls[-1] for number in waits.tolist()]]
    waits, over = waits[np.argsort(over, kind="stable")], np.sort(over)
    last = np.searchsorted(over, trace.start[calls], side="right") - 1
    calls, last = calls[last >= 0], last[last >= 0]
    why[calls], by[calls] = CODE[Why.HOST], events + waits[last]

    for number, read in enumerate(reads):
        if read.waited_for >= 0:
            why[events + number], by[events + number] = CODE[Why.RETURN], read.waited_for

    if len(work.row):
        numbers = np.arange(len(work.row))
        before = np.full(len(work.row), -1, np.int64)  # the work before it in its queue
        order = np.lexsort((numbers, work.queue))
        same = np.diff(work.queue[order], prepend=-1) == 0
        before[order[same]] = order[np.flatnonzero(same) - 1]
        ending = np.argsort(work.end, kind="stable")
        ended = np.searchsorted(work.end[ending], work.start, side="right") - 1
        newest = np.where(ended >= 0, ending[np.maximum(ended, 0)], -1)  # the last of any queue that was over
        cause, source = work.cause, work.source
        others = np.isin(cause, (Cause.TOLD, Cause.INFERRED))
        chosen = np.select([others, cause == Cause.QUEUE, cause == Cause.FULL], [source, before, newest], -1)
        why[work.row] = np.array([CODE[OF[one]] for one in Cause], np.uint8)[cause]
        by[work.row] = np.where(chosen >= 0, work.row[np.maximum(chosen, 0)], -1)
        launching = host.row[work.item] if len(host.row) else np.full(len(work.row), -1)
        by_launch = (cause == Cause.LAUNCH) & (launching >= 0)
        by[work.row[by_launch]] = launching[by_launch]
    return HeldUp(why, by)
