"""What a step takes at least, whatever the waits did: the device's own work, the host's own, and the longest chain of both.

```text
host   [launch a][ wait for a....]  Python  [launch b]         host's own:    launch a, Python, launch b
queue              [=====a=======]                  [==b==]    device's own:  a, b
```

Work that a read enqueues itself (its copy, what counts) goes with it, and what its rewrite computes no longer; of rows what
their line launched before. An upload from
pageable memory takes as long as from pinned, and whatever may be the recorder's, or the price of having waited, is taken off
the host. So nothing here rests on a price being right: a step without waits is no shorter.

Where the device is a processor, host and device have one memory and one cache. A host that does not wait was seen to do its own
work in less time then, by at most `PACE`; so that, too, is taken off.

What is saved is a part of a step. It is as long as those that were not recorded: where these were few, as long as their median
may be.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from syncscope.analysis.changes import Supposed
from syncscope.analysis.entries import Hold, Run
from syncscope.analysis.errors import half_interval_of_median
from syncscope.analysis.event_graph import EventGraph
from syncscope.analysis.graph import Graph
from syncscope.analysis.intervals import covered, union
from syncscope.analysis.price import TimedPart, timed_part
from syncscope.analysis.recorder_cost import SEEN, unmeasured
from syncscope.analysis.replay import replay
from syncscope.model.bound import SavingBound

EASIEST = Supposed(late="never", gone=True, slow=True, added="nothing", how="easiest")
# of the host's own work, where values are read, and where rows are asked for: then each call is another
PACE = 0.15, 0.4


def bound_of(event_graph: EventGraph, graph: Graph, replayed: bool, heard: bool = True) -> SavingBound | None:
    """The bound of what `graph` is replayed for, per step, or over a recording without steps; None without work of a device.

    Where a replay does not give back the recording (not `replayed`), the chain is left out: it would rest on one. Where a
    thread seems to wait by no recorded call (not all was `heard`), so is the host's own time: waits may be among it.
    """
    window = timed_part(graph)
    step = window.of(replay(graph))
    if not graph.ops or step <= 0:
        return None
    taken = SEEN if unmeasured(event_graph.trace) else event_graph.recorder
    easiest = event_graph.graph(taken, EASIEST)
    everything = range(len(graph.reads))
    chain = window.of(replay(easiest, everything)) if replayed and heard else 0.0
    host = host_alone(easiest, window) if heard else 0.0
    quicker = PACE[bool(event_graph.counting)] if event_graph.on_processor and event_graph.reads else 0.0
    others = others_had(event_graph)
    untraced = event_graph.trace.meta.get("untraced")
    longest = step + half_interval_of_median(untraced) if untraced else 0.0
    device = device_alone(event_graph, graph, window)
    return SavingBound(step, device, host, min(chain, step), quicker, others, longest)


def others_had(event_graph: EventGraph) -> float:
    """The part of the device's time that other programs had, where it is a processor: its work would take so much less."""
    return float(event_graph.trace.meta.get("others") or 0.0) if event_graph.on_processor else 0.0


def device_alone(event_graph: EventGraph, graph: Graph, window: TimedPart) -> float:
    """ns a step that the busiest queue works, without what is enqueued by reads, nor for them."""
    work, out = event_graph.device_work, event_graph.taken_out
    since, until = window.span(graph)
    stays = (out.launched_by(out.whole) < 0) & (out.cleared(out.clearing | out.counting) < 0)
    for one in event_graph.selections:
        stays[one.back] = False
    end = work.end.copy()
    for copy, (_, pinned) in out.uploads.items():
        stays[copy], end[copy] = True, work.start[copy] + pinned
    span = np.array([since], np.int64), np.array([until], np.int64)
    found = 0.0
    for queue in range(work.queues):
        of = stays & (work.queue == queue)
        worked = union(work.start[of].astype(np.int64), end[of].astype(np.int64))
        found = max(found, float(covered(worked, *span)[0]))
    return found / window.steps * (1 - others_had(event_graph))


def host_alone(graph: Graph, window: TimedPart) -> float:
    """ns a step that the host takes if it waits for nothing at all."""
    host, ends = 0.0, list[float]()
    for entry in graph.stream:
        if isinstance(entry, Run):
            host += entry.advance
        elif isinstance(entry, Hold):
            host += entry.host_gap + (entry.freed if entry.read >= 0 else 0.0)
            if entry.mark >= 0:
                ends.append(host)
        else:
            host += entry.host_gap - (entry.spare if entry.read >= 0 else 0.0)
    return float(replace(window, since=0.0).length(np.array([host]), np.array([ends]))[0])
