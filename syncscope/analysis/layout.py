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

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.graph import NEVER, Fold, Graph
from syncscope.analysis.waits import SLACK, Launches, Wait, stream_waits
from syncscope.model.report import Read, Step
from syncscope.model.trace import Kind, Trace

BACK_TO_BACK = 4_000  # ns: a kernel that starts sooner after its predecessor was waiting for it
HAND_OVER = 10_000  # ns: a kernel that starts sooner after one of another queue may have waited for that one
ODD_LATENCY = 20_000  # ns beyond three times the usual: a launch takes no longer by itself
VALUES = ("item", "bool", "float", "int", "tolist")  # reads that do nothing but fetch a value
CALL = 4_000.0  # ns that the call of a read takes at most if it does not wait
PASSING = 2_000  # ns from the end of work to the begin of work in another queue that waited for it
DEPTH = 1024  # CUDA's queues take at least so many launches before a launch blocks


class Layout:
    """A recording taken apart: what the host did in which order, what each queue did, and who waited for whom."""

    def __init__(
        self,
        trace: Trace,
        launched: Launches,
        waits: Sequence[Wait],
        reads: tuple[Read, ...],
        steps: tuple[Step, ...] = (),
    ) -> None:
        self.reads, self.steps = reads, steps
        self._held = [w for w in waits if not w.closing]
        self._trace = trace
        self._host = host = _Host(trace, launched, self._held, steps)
        self._work = work = _Work(trace, launched, host)
        self._ends = work.start + work.duration
        self._first = np.searchsorted(work.item, np.arange(len(host.row) + 1)).tolist()
        self._targets = self._targets_of()

    def graph(self, overhead: float = 0.0, collectives: Mapping[int, int] | None = None) -> Graph:
        """What is replayed; `overhead` ns are taken off the host for each operator it ran (the profiler's own time).

        `collectives` numbers the work (by its row in the trace) that ends together with that of other ranks.
        """
        host, work, targets, first, ends = self._host, self._work, self._targets, self._first, self._ends
        read_of = {row: number for number, read in enumerate(self.reads) for row in read.calls}
        began, over = host.began.tolist(), host.end.tolist()
        needed = {j for found in targets.values() for j in found} | set(work.source[work.source >= 0].tolist())
        numbers = collectives or {}
        meets = {j: numbers[row] for j, row in enumerate(work.row.tolist()) if row in numbers} if numbers else {}
        fold = Fold(needed, len(work.start), meets)
        holds: list[list[int]] = [[] for _ in self.reads]
        gaps, cost = (host.gap - _overhead(self._trace, host, overhead)).tolist(), host.cost.tolist()
        columns = (work.latency, work.queue, work.gap, work.duration, work.source, work.lag)
        ops = list(zip(*(column.tolist() for column in columns), strict=True))
        launches = work.launch.tolist()
        spared = self._spared()
        marks = []
        reach = np.maximum.accumulate(ends) if len(ends) else ends
        for item, row in enumerate(host.row.tolist()):
            fold.advance(gaps[item])
            for j in range(first[item], first[item + 1]):
                fold.launch(j, *ops[j])
            if row in targets:
                found = targets[row]
                after = max([began[item], *(ends[j] for j in found)])
                number = read_of.get(row, -1)
                if number >= 0:
                    holds[number].append(fold.position())
                back = float(max(-SLACK, over[item] - after))
                fold.hold(found, back, spared.get(row, min(max(back, 0.0), CALL)), number)
            elif row < 0:
                fold.hold((), 0.0, 0.0, mark=-1 - row)
                marks.append(max(began[item], float(reach[first[item + 1] - 1]) if first[item + 1] else 0.0))
            elif launches[item]:
                fold.advance(cost[item])
        fold.flush()
        return Graph(
            stream=fold.stream,
            queues=work.queues,
            reads=self.reads,
            holds=tuple(tuple(h) for h in holds),
            steps=self.steps,
            end=float(max(host.end.max(initial=0.0), ends.max(initial=0.0))),
            ends=tuple(marks),
            depth=work.depth,
            inferred=work.inferred,
            odd=work.odd,
            guessed=sum(w.guessed and bool(targets[w.row]) for w in self._held),
            ops=len(work.start),
            origin=host.origin,
            overlap=host.overlap,
        )

    def _spared(self) -> dict[int, float]:
        """What the calls of reads that only fetch a value take if the value is not asked for, ns: less than nothing.

        Such an expression goes with its wait, and the host's own time in it too. Its calls take nothing, and the last of them
        gives back what the expression took besides.
        """
        found = {}
        for read in self.reads:
            if read.op in VALUES:
                found.update(dict.fromkeys(read.calls, 0.0))
                found[read.calls[-1]] = -float(read.besides)
        return found

    def _targets_of(self) -> dict[int, tuple[int, ...]]:
        """The work (by number) that each wait waited for: of what was launched by then, what ended before it returned."""
        item_of = {row: item for item, row in enumerate(self._host.row.tolist()) if row >= 0}
        order = np.argsort(self._work.row)
        rows, over, ends = self._work.row[order], self._host.end, self._ends
        found = {}
        for wait in self._held:
            item = item_of[wait.row]
            numbers = order[np.searchsorted(rows, np.array(wait.targets, np.intp))].tolist()
            launched = self._first[item + 1]
            found[wait.row] = tuple(j for j in numbers if j < launched and ends[j] <= over[item] + SLACK)
        return found


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
        length = float((end - begin).sum())
        self.overlap = float((np.minimum(reach, end) - begin).clip(0.0).sum()) / length if length else 0.0


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
        self._recorded(trace, host)
        self.depth = self._depth(host)

    def _bounds(self, host: _Host, known: NDArray[np.bool_]) -> None:
        count = len(self.start)
        end = self.start + self.duration
        before = np.full(count, NEVER)  # when the predecessor in the queue was over
        same = np.zeros(count, bool)  # whether it came from the same launch
        for queue in range(self.queues):
            of = np.flatnonzero(self.queue == queue)
            before[of[1:]] = end[of[:-1]]
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

    def _recorded(self, trace: Trace, host: _Host) -> None:
        """Edges between queues that the driver recorded, in place of those inferred for the same work."""
        told = stream_waits(trace)
        if not told or not len(host.row):
            return
        end = self.start + self.duration
        launched = host.began[self.item] + host.origin
        threads = [trace.lanes[lane].thread for lane in trace.lane[self.row].tolist()]
        of = {thread: np.array([t == thread for t in threads], bool) for thread in set(threads)}
        for wait in told:
            if wait.queue not in of or wait.awaited not in of:
                continue
            later = np.flatnonzero(of[wait.queue] & (launched >= wait.since))
            before = np.flatnonzero(of[wait.awaited] & (launched <= wait.recorded))
            if not len(later) or not len(before) or before[-1] >= later[0]:
                continue
            j, k = int(later[0]), int(before[-1])
            lag = self.start[j] - end[k]
            if lag >= -SLACK and (self.source[j] < 0 or end[k] >= end[self.source[j]]):
                guessed = self.source[j] >= 0  # then nothing else is known to have held it up
                self.inferred -= int(guessed and self.start[j] - end[self.source[j]] <= HAND_OVER)
                self.source[j], self.lag[j] = k, lag if guessed else min(lag, PASSING)

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
    began = trace.start[trace.rows(Kind.OP)] - host.origin
    upto = np.searchsorted(began, host.began)
    count = np.diff(np.concatenate(([0], upto)))
    return np.minimum(host.gap, count * each)
