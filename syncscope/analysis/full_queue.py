"""Launch calls that were long because the queue was full: the host waits for the device in them, and does nothing.

```text
host   [a][b][c][d..............][e..............]     a queue takes three launches: d waits until a has begun
queue            [====a=========][====b=========]
```

No call is recorded as such a wait. It shows where the device has as many launches before it as ever and calls are long there,
and not elsewhere: on a V100 186 of 1,190 calls of a step took over 100 us, each of them with 1,021 launches before it. So long
as the queue is full such a call is as long as the device makes it; with a faster device it is as short as any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.graph import Graph
from syncscope.analysis.hosts import Host
from syncscope.analysis.replay import replay
from syncscope.analysis.start_causes import ODD, DeviceWork
from syncscope.model.trace import Trace

DEEP = 32  # launches before the device, from which a queue may be full
NEAR = 0.9  # of the most launches that were before the device: there the queue is full
HELD = 10  # calls that are long there, from which it is one that is full
OFTENER = 5.0  # times as often as elsewhere
LONG = (1.5, 2.0, 3.0)  # times as long as usual: the least that tells them from those elsewhere
SHORT = 5  # calls from which it is known how long one is that waits for nothing
WORTH = 0.02  # of the time in which the device works: so much in calls of which nobody knows, and nothing is said
OFF = 0.005  # of the recording: so well it must be given back without them
Times = NDArray[np.float64]
Truths = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class FullQueue:
    """How long the host is in each of its items without the wait for a queue that is full, ns (`cost`).

    `depth` is how many launches the device takes then, `held` how many calls waited. Where calls are long with much before the
    device, and it cannot be told whether they waited, it is `unclear`, and `cost` as recorded.
    """

    cost: Times
    depth: int
    held: int = 0
    unclear: bool = False

    def gives_back(self, graph: Graph, ends: Sequence[float]) -> bool:
        """Whether a replay of these times ends the steps when they did end."""
        outcome = replay(graph)
        off = max(
            (abs(a - b) for a, b in zip((*outcome.ends, outcome.end), (*ends, graph.end), strict=True)), default=0.0
        )
        return off <= OFF * graph.end


def full_queue(trace: Trace, host: Host, work: DeviceWork) -> FullQueue:
    """Where the queue of a recording was full."""
    plain = work.launch[:-1] & ~host.holds & (host.row >= 0)
    if not plain.any():
        return FullQueue(host.cost, work.depth)
    first = np.searchsorted(work.item, np.arange(len(host.row)))
    ahead = first - np.searchsorted(np.sort(work.start), host.began)
    most = int(ahead[plain].max())
    if most < DEEP:
        return FullQueue(host.cost, work.depth)
    near = plain & (ahead >= NEAR * most)
    usual = _usual(trace, host, plain & ~near)
    for times in LONG:  # nothing is long where nothing is known to be usual
        long = plain & (host.cost > times * usual)
        held, elsewhere = long & near, long & ~near
        often = OFTENER * elsewhere.sum() / max(1, (plain & ~near).sum())
        if held.sum() >= HELD and held.sum() / near.sum() > often:
            depth = int(np.median(ahead[held])) - 1  # one of them must begin before the next is taken
            return FullQueue(np.where(held, usual, host.cost), depth, int(held.sum()))
    doubtful = (long & (host.cost > ODD) & (ahead >= DEEP)) | (near & np.isnan(usual) & (host.cost > ODD))
    return FullQueue(host.cost, work.depth, unclear=_much(host, doubtful, work))


def untold(host: Host, work: DeviceWork) -> FullQueue:
    """The times as recorded, where calls seemed to wait, and a replay without that does not give back the recording."""
    return FullQueue(host.cost, work.depth, unclear=True)


def _usual(trace: Trace, host: Host, free: Truths) -> Times:
    """How long a call of each item's name takes where the queue is not full: of its own, else of any launch; NaN: not known."""
    found = np.full(len(host.row), np.nan)
    if free.sum() >= SHORT:
        found[:] = np.median(host.cost[free])
    name = np.where(host.row >= 0, trace.name[np.maximum(host.row, 0)], -1)
    for code in np.unique(name[free]).tolist():
        of = free & (name == code)
        if of.sum() >= SHORT:
            found[name == code] = np.median(host.cost[of])
    return found


def _much(host: Host, doubtful: Truths, work: DeviceWork) -> bool:
    return bool(host.cost[doubtful].sum() > WORTH * max(float(work.end.max(initial=0.0)), 1.0))
