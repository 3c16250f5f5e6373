"""A recording as an event graph: what had to be over before what could begin, and how long each thing took by itself.

```text
host   --gap--[launch]--gap--[launch]--gap--[ wait.................]--gap--[launch]
                 \\ latency      \\                                 ^ return
queue             [====K1====]gap[=======K2=======================]/
```

The host is one clock: threads that enqueue work take turns (the main thread waits inside `backward()`), so their calls are
ordered by start. Every number is taken from the recording, so a replay that changes nothing reproduces it; how well is the
graph's fidelity. Two things are not in a recording and are inferred: which other queue a kernel waited for, and how much of
a launch's latency was the launch. The graph counts them.

Times are ns since `origin`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.waits import SLACK, Launches, Wait
from syncscope.model.report import Read, Step
from syncscope.model.trace import Trace

BACK_TO_BACK = 4_000  # ns: a kernel that starts sooner after its predecessor was waiting for it
HAND_OVER = 10_000  # ns: a kernel that starts sooner after one of another queue may have waited for that one
ODD_LATENCY = 20_000  # ns beyond three times the usual: a launch takes no longer by itself
DEPTH = 1024  # CUDA's queues take at least so many launches before a launch blocks
NEVER = -1e18  # a time that bounds nothing


class Op(NamedTuple):
    """Work of a queue: begins `latency` after its launch, `gap` after its predecessor, `lag` after `source`."""

    host_gap: float
    latency: float
    queue: int
    gap: float
    duration: float
    host_cost: float  # of the launch, 0 for all but the last of one launch
    source: int = -1  # work of another queue
    lag: float = 0.0


class Hold(NamedTuple):
    """A moment at which the host waits for work: the call of a read, or a step's end (`read` -1, no targets)."""

    host_gap: float
    targets: tuple[int, ...]
    returns: float  # ns from the end of the work to the return of the call
    read: int
    mark: int


@dataclass(frozen=True, slots=True)
class Graph:
    """What is replayed: `stream` is the host's order of launches and waits.

    `reads` are the logical reads, `holds` the positions in `stream` at which each of them waits. `ends[m]` is when step m
    had ended in the recording, on the host and on the device; `end` the same for everything.
    """

    stream: list[Op | Hold]
    queues: int
    reads: tuple[Read, ...]
    holds: tuple[tuple[int, ...], ...]
    steps: tuple[Step, ...]
    end: float
    ends: tuple[float, ...]
    depth: int
    needed: frozenset[int] = field(repr=False)  # work whose end somebody waits for
    inferred: int = 0  # edges between queues that were guessed from times
    odd: int = 0  # work that began late for no recorded reason: it is kept as late after the work before it
    guessed: int = 0  # waits whose target was guessed from times
    ops: int = 0


def compile_graph(
    trace: Trace,
    launched: Launches,
    waits: Sequence[Wait],
    reads: tuple[Read, ...],
    steps: tuple[Step, ...] = (),
    overhead: float = 0.0,
) -> Graph:
    """The graph of a recording; `overhead` ns are taken off the host's time for each operator it ran (the profiler's own)."""
    held = [w for w in waits if not w.closing]
    host = _Host(trace, launched, held, steps)
    work = _Work(trace, launched, host)
    host_gap = host.gap - _overhead(trace, host, overhead)
    read_of = {row: number for number, read in enumerate(reads) for row in read.calls}
    index_of = {row: i for i, row in enumerate(work.row.tolist())}
    wait_of = {w.row: w for w in held}
    last_of_item = work.last_of_item.tolist()
    stream: list[Op | Hold] = []
    holds: list[list[int]] = [[] for _ in reads]
    needed: set[int] = set()
    guessed = 0
    gaps, latency, queue, gap = host_gap.tolist(), work.latency.tolist(), work.queue.tolist(), work.gap.tolist()
    duration, source, lag = work.duration.tolist(), work.source.tolist(), work.lag.tolist()
    cost, began, over = host.cost.tolist(), host.began.tolist(), host.end.tolist()
    first = np.searchsorted(work.item, np.arange(len(gaps) + 1)).tolist()
    ends = (work.start + work.duration).tolist()
    for item, row in enumerate(host.row.tolist()):
        wait = wait_of.get(row) if row >= 0 else None
        pending = gaps[item]
        for j in range(first[item], first[item + 1]):
            own = cost[item] if last_of_item[j] and wait is None and row >= 0 and work.launch[item] else 0.0
            stream.append(Op(pending, latency[j], queue[j], gap[j], duration[j], own, source[j], lag[j]))
            if source[j] >= 0:
                needed.add(source[j])
            pending = 0.0
        if wait is not None:
            targets = tuple(
                j for t in wait.targets if (j := index_of[t]) < first[item + 1] and ends[j] <= over[item] + SLACK
            )
            after = max([began[item], *(ends[j] for j in targets)])
            number = read_of.get(row, -1)
            if number >= 0:
                holds[number].append(len(stream))
            stream.append(Hold(pending, targets, max(-SLACK, over[item] - after), number, -1))
            needed.update(targets)
            guessed += wait.guessed and bool(targets)
        elif row < 0:
            stream.append(Hold(pending, (), 0.0, -1, -1 - row))
        elif first[item] == first[item + 1] and cost[item]:
            stream.append(Hold(pending, (), cost[item], -1, -1))
    reach = np.maximum.accumulate(work.start + work.duration) if len(work.start) else np.zeros(0)
    marks = []
    for item, row in enumerate(host.row.tolist()):
        if row < 0:
            before = first[item + 1]
            marks.append(max(began[item], float(reach[before - 1]) if before else 0.0))
    return Graph(
        stream=stream,
        queues=work.queues,
        reads=reads,
        holds=tuple(tuple(h) for h in holds),
        steps=steps,
        end=max([0.0, *over[-1:], *(host.end.max(initial=0.0),), *(reach[-1:].tolist())]),
        ends=tuple(marks),
        depth=work.depth,
        needed=frozenset(needed),
        inferred=work.inferred,
        odd=work.odd,
        guessed=guessed,
        ops=len(work.start),
    )


class _Host:
    """Launches, waits and ends of steps in the order in which the host came to them; `row` is -1 - m for the end of step m."""

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


class _Work:
    """Kernels, copies and fills in the order in which the host enqueued them, and what each waited for."""

    def __init__(self, trace: Trace, launched: Launches, host: _Host) -> None:
        start = (trace.start[launched.row] - host.origin).astype(float)
        known = launched.call >= 0
        of_row = np.full(len(trace) + 1, -1, np.intp)
        of_row[host.row[host.row >= 0]] = np.flatnonzero(host.row >= 0)
        item = of_row[launched.call]  # the last of `of_row` is that of call -1: none
        by_time = np.searchsorted(host.begin, start, side="right") - 1
        for lane in np.unique(
            trace.lane[launched.row[~known]]
        ):  # a launch that was not recorded: that of its predecessor
            of = np.flatnonzero(trace.lane[launched.row] == lane)
            of = of[np.argsort(start[of], kind="stable")]
            last = np.maximum.accumulate(np.where(known[of], np.arange(len(of)), -1))
            first_known = item[of[known[of]]][:1]
            item[of] = np.where(last >= 0, item[of[last]], first_known if len(first_known) else by_time[of])
        item = np.maximum(item, 0)
        order = np.lexsort((start, item))
        self.row, self.item, self.start, known = launched.row[order], item[order], start[order], known[order]
        self.duration = trace.duration[self.row].astype(float)
        lanes = trace.lane[self.row]
        names = np.unique(lanes)
        self.queue = np.searchsorted(names, lanes)
        self.queues = len(names)
        self.launch = np.zeros(len(host.row) + 1, bool)
        self.launch[self.item[known]] = True
        self.last_of_item = (
            np.concatenate((self.item[1:] != self.item[:-1], [True])) if len(start) else np.zeros(0, bool)
        )
        self._bounds(host, known)
        self.depth = self._depth(host)

    def _bounds(self, host: _Host, known: NDArray[np.bool_]) -> None:
        count = len(self.start)
        end = self.start + self.duration
        before = np.full(count, NEVER)  # when the predecessor in the queue was over
        same = np.zeros(count, bool)  # whether it came from the same launch
        for queue in range(self.queues):
            of = np.flatnonzero(self.queue == queue)
            before[of[1:]] = np.maximum.accumulate(end[of])[:-1]
            same[of[1:]] = self.item[of[1:]] == self.item[of[:-1]]
        began = host.began[self.item] if len(host.row) else np.zeros(count)
        latency, gap = self.start - began, self.start - before
        follows = before > NEVER
        bound = follows & (gap < BACK_TO_BACK)
        free = known & ~bound & ~same
        idle = free & (before <= began)  # the queue had nothing to do: what passed is the launch itself
        usual = float(np.median(latency[idle])) if idle.any() else 0.0
        close = gap[bound & (gap >= 0)]
        usual_gap = float(np.median(close)) if len(close) else 0.0
        # What no queue does is not replayed, so a recording with a wrong clock, or work that overlaps, shows in the fidelity.
        latency = np.where(known, np.maximum(latency, -SLACK), latency)
        gap = np.maximum(gap, -SLACK)
        chained = (same | (~known & follows)) & follows  # a graph's members, and work whose launch was not recorded
        self.latency = np.where(bound, np.minimum(latency, usual), latency)
        self.latency[chained] = NEVER
        self.gap = np.where(bound | chained, gap, np.minimum(gap, usual_gap))
        self.gap[~follows] = 0.0
        self.source, self.lag = np.full(count, -1, np.intp), np.zeros(count)
        self.inferred = self.odd = 0
        by_end = np.argsort(end, kind="stable")
        ends = end[by_end]
        for j in np.flatnonzero(free & (latency > 3 * usual + ODD_LATENCY)).tolist():
            source = _source(by_end, ends, j, began[j], self.start[j])
            if source < 0:
                continue  # nothing was under way when it was launched: the launch itself took so long
            self.latency[j] = min(latency[j], usual)
            if self.queue[source] == self.queue[j]:
                self.gap[j] = gap[j]
            else:
                self.source[j], self.lag[j] = source, self.start[j] - end[source]
            if self.start[j] - end[source] > HAND_OVER:
                self.odd += 1
            elif self.queue[source] != self.queue[j]:
                self.inferred += 1

    def _depth(self, host: _Host) -> int:
        """How many launches may be enqueued and not begun: what was seen, at least CUDA's own limit."""
        if not len(self.start) or not len(host.row):
            return DEPTH
        reach = np.maximum.accumulate(self.start)
        begun = np.searchsorted(reach, host.began[self.item], side="right")
        return int(max(DEPTH, (np.arange(len(begun)) - begun).max() + 1))


def _source(by_end: NDArray[np.intp], ends: NDArray[np.float64], j: int, launched: float, start: float) -> int:
    """The work enqueued before `j` whose end `j` seems to have waited for: the last to end before it began."""
    at = int(np.searchsorted(ends, start + 1, side="right")) - 1
    while at >= 0 and ends[at] > launched:
        if by_end[at] < j:
            return int(by_end[at])
        at -= 1
    return -1


def _overhead(trace: Trace, host: _Host, each: float) -> Any:
    """The profiler's own time in each gap of the host: so much for each operator that began in it, at most the gap."""
    if not each or not len(host.row):
        return np.zeros(len(host.row))
    from syncscope.model.trace import Kind

    began = trace.start[trace.rows(Kind.OP)] - host.origin
    upto = np.searchsorted(began, host.began)
    count = np.diff(np.concatenate(([0], upto)))
    return np.minimum(host.gap, count * each)
