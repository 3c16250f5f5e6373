"""A recording as an event graph: what had to be over before what could begin, and how long each thing took by itself.

```text
host   --gap--[launch]--gap--[launch]--gap--[ wait.................]--gap--[launch]
                 \\ latency      \\                                 ^ return
queue             [====K1====]gap[=======K2=======================]/
```

The host is one clock: threads that enqueue work take turns (the main thread waits inside `backward()`), so their calls are
ordered by start. Every number is taken from the recording, so a replay that changes nothing reproduces it. What was late for
no recorded reason is late in it too; a graph without that lateness shows how much of the recording is understood.

Times are ns since `origin`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.backlog import first_step_began
from syncscope.analysis.changes import AS_RECORDED, Changes, Supposed
from syncscope.analysis.experience import BUSY
from syncscope.analysis.folding import Enqueued, folded
from syncscope.analysis.full_queue import full_queue, untold
from syncscope.analysis.graph import NEVER, Graph
from syncscope.analysis.holding import Holding, Saved
from syncscope.analysis.hosts import OPERATOR, Host, Recorder
from syncscope.analysis.intervals import Intervals, union
from syncscope.analysis.lateness import Late, Returns, late, silent
from syncscope.analysis.leaving import Leaving
from syncscope.analysis.on_time import on_time
from syncscope.analysis.orders import seen
from syncscope.analysis.reads import reads
from syncscope.analysis.selections import SelectedRows, selections
from syncscope.analysis.start_causes import Cause, DeviceWork
from syncscope.analysis.steps import as_worked, in_whole_rounds, quietest, steps
from syncscope.analysis.taken_out import TakenOut
from syncscope.analysis.waits import Launches, Wait, launches, waits
from syncscope.model.report import Read, Step
from syncscope.model.trace import Trace


def event_graph_of(trace: Trace, pinned: float | None = None, by_work: bool = False) -> EventGraph:
    """A recording taken apart: its launches, waits, steps and reads are found first.

    `pinned` is how fast the device fetches from pinned memory, bytes a ns (GB/s); by default `pinned_bandwidth`. With `by_work`
    steps end where their work is over, whatever the host did: as those of a recording that this one stands beside, and of a
    rank of a job, which meets the others on its device.
    """
    by_work |= int(trace.meta.get("world_size") or 1) > 1
    launched = launches(trace)
    held, marked = waits(trace, launched), steps(trace, launched)
    return EventGraph(trace, launched, held, reads(trace, held, launched, marked), marked, pinned, by_work)


class EventGraph:
    """A recording taken apart: what the host did in which order, what each queue did, and who waited for whom."""

    def __init__(
        self,
        trace: Trace,
        launched: Launches,
        waits: Sequence[Wait],
        reads: tuple[Read, ...],
        steps: tuple[Step, ...],
        pinned: float | None,
        by_work: bool,
    ) -> None:
        self.launched, self.reads, self.marked = launched, reads, steps
        self.held = [w for w in waits if not w.closing]
        self._calls = np.array(sorted(w.row for w in waits if w.targets or w.closing), np.intp)
        self.trace = trace
        self.recorder = Recorder()
        self._plain: frozenset[int] = frozenset()
        self._taking: list[SelectedRows] = []
        self._graphs: dict[tuple[Recorder, Supposed], Graph] = {}
        self._host = host = Host(trace, launched, self.held, steps)
        self._work = work = DeviceWork(trace, launched, host)
        self._first = np.searchsorted(work.item, np.arange(len(host.row) + 1))
        items = np.flatnonzero(host.holds)
        self._item_of = dict(zip(host.row[items].tolist(), items.tolist(), strict=True))
        self.returns = Returns(trace, self.held, host, work, self._item_of)
        self.ends = self._ends_of_steps()
        ended = [host.origin + end for end in self.ends]
        began = first_step_began(trace, launched, steps, ended)
        self._begin = 0.0 if began is None else float(began - host.origin)
        self.steps = as_worked(trace, launched, steps, ended, began, by_work)
        self.by_work = self.steps is not steps
        made = [(read.step, (read.place, read.column, read.op)) for read in reads]
        if self.on_processor and float(trace.meta.get("others") or 0.0) > BUSY:
            self.steps = quietest(self.steps, made)
        self.steps, self.rounds = in_whole_rounds(self.steps, made)
        self._pinned = pinned
        self.full = full_queue(trace, host, work)
        if self.full.held and not self.full.gives_back(self.graph(), self.ends):
            self.full = untold(host, work)
            self._graphs.clear()

    @cached_property
    def taken_out(self) -> TakenOut:
        """What goes with a read that is taken out."""
        return TakenOut(self.trace, self.reads, self._host, self._work, self.marked, self._pinned)

    @cached_property
    def selections(self) -> list[SelectedRows]:
        """The rows that were selected, and what runs over them."""
        host, work = self._host, self._work
        launch_times = host.begin[work.enqueued] + host.origin if len(host.row) else work.start + host.origin
        counted = self.taken_out.launched_by(self.counting)
        return selections(self.trace, self.reads, work.row, launch_times.astype(np.int64), counted)

    @property
    def device_work(self) -> DeviceWork:
        """What the device did, and why each piece of it began when it did."""
        return self._work

    @property
    def host(self) -> Host:
        """What the host did, in order."""
        return self._host

    def rewritten(self, plain: Collection[int], clearing: Collection[int] = (), taking: Collection[int] = ()) -> None:
        """These reads have rewrites that add nothing: no work over all rows where they select, no launch in their place. With
        `clearing` ones goes what their lines launched for them; after those of `taking` ones rows are taken as ever."""
        self._taking = [one for one in self.selections if not set(one.reads).isdisjoint(taking)]
        self.selections = [one for one in self.selections if set(one.reads).isdisjoint(plain)]
        self._plain, self.taken_out.clearing = frozenset(plain), frozenset(clearing)
        self.taken_out.taking = frozenset(n for n in taking if n in self.taken_out.whole)
        self._graphs.clear()

    def kept(self, reads: Collection[int]) -> float | None:
        """The share of the rows that is kept by the selections for which these reads ask; None without any."""
        of = [one for one in self.selections if not set(one.reads).isdisjoint(reads)]
        return sum(one.kept for one in of) / sum(one.rows for one in of) if of else None

    def host_times(self, recorder: Recorder) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The host's time before each of its items and in it, ns, without the recorder's nor the wait for a full queue."""
        return recorder.gaps(self.trace, self._host), self.full.cost * (1 - recorder.share)

    def graph(
        self,
        recorder: Recorder | None = None,
        supposed: Supposed = AS_RECORDED,
        collectives: Mapping[int, int] | None = None,
        changes: Changes | None = None,
    ) -> Graph:
        """What is replayed, without the time of the `recorder`, by default that of the whole graph.

        `collectives` numbers the work (by its row in the trace) that ends together with that of other ranks. With `changes`,
        something is otherwise than recorded.
        """
        recorder = self.recorder if recorder is None else recorder
        chosen = self.selections + self._taking * (supposed.how == "fixed")
        added, stays = supposed.added if chosen else "nothing", supposed.stays and bool(self.replaceable)
        supposed = replace(supposed, added=added, stays=stays)  # those that are alike are one graph
        if collectives is not None or changes is not None:
            return self._graph(recorder, supposed, chosen, collectives or {}, changes or Changes())
        key = recorder, supposed
        if key not in self._graphs:
            self._graphs[key] = self._graph(recorder, supposed, chosen, {}, Changes())
        return self._graphs[key]

    def _graph(
        self,
        recorder: Recorder,
        supposed: Supposed,
        chosen: Sequence[SelectedRows],
        collectives: Mapping[int, int],
        changes: Changes,
    ) -> Graph:
        host, work = self._host, self._work
        holding, leaving = self._without(recorder, supposed, chosen, changes)
        gaps, cost = self._host_times(recorder, changes)
        launches = self._enqueued(supposed, collectives, changes, leaving)
        holds = (host.row < 0) | host.holds
        cost = np.where(work.launch[:-1] & ~holds, cost, 0.0)
        stream = folded(launches, gaps, cost, np.flatnonzero(holds), self.full.depth, holding.hold)
        return Graph(
            stream=stream,
            queues=work.queues,
            reads=self.reads,
            holds=tuple(tuple(h) for h in holding.of_reads),
            steps=self.steps,
            end=float(max(host.end.max(initial=0.0), work.end.max(initial=0.0))),
            ends=self.ends,
            depth=self.full.depth,
            free=tuple(work.free.tolist()),
            together=tuple(one.reads for one in chosen),
            inferred=int((work.cause == Cause.INFERRED).sum()),
            assumed=work.assumed,
            odd=int((work.cause == Cause.NOTHING).sum()),
            crowded=int((work.cause == Cause.FULL).sum()),
            guessed=sum(w.guessed and bool(self.returns.targets[w.row]) for w in self.held),
            ops=len(work.start),
            origin=host.origin,
            begin=self._begin,
            overlap=host.overlap,
        )

    def _host_times(self, recorder: Recorder, changes: Changes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """As `host_times`, but what is changed."""
        gaps, cost = self.host_times(recorder)
        return gaps if changes.gaps is None else changes.gaps, cost if changes.cost is None else changes.cost

    def _without(
        self, recorder: Recorder, supposed: Supposed, chosen: Sequence[SelectedRows], changes: Changes
    ) -> tuple[Holding, Leaving]:
        """What each read holds the host for, and what goes with it."""
        host, out, stays = self._host, self.taken_out, supposed.stays
        gaps, cost = self._host_times(recorder, changes)
        going = out.whole - self.uploads if supposed.gone else out.fetching if stays else self.replaceable
        launching = np.where(host.holds, 0.0, cost + np.minimum(gaps, OPERATOR))
        leaving = Leaving(self.trace, self.reads, host, self._work, out, going, supposed, launching)
        leaving.clear()
        leaving.select(chosen)
        saved = Saved(
            slower=out.slower() if supposed.slow else np.zeros(len(host.row)),
            colder=out.colder(gaps, cost),
            anew={} if stays else {n: ns for n, ns in out.anew(most=supposed.gone).items() if n not in leaving.taking},
            spared=leaving.spared(recorder, self._plain),
        )
        returns = self.returns.prompt if supposed.late == "never" else self.returns.recorded
        return Holding(host, self.reads, self.returns.targets, returns, recorder.share, saved), leaving

    def _enqueued(
        self, supposed: Supposed, collectives: Mapping[int, int], changes: Changes, leaving: Leaving
    ) -> Enqueued:
        """The device's work, and what each piece of it waits for."""
        work = self._work
        source, lag = seen(work) if supposed.ordered else (work.source, work.lag)
        needed = np.zeros(len(work.start), bool)
        needed[[j for found in self.returns.targets.values() for j in found]] = True
        needed[source[source >= 0]] = True
        collective = np.full(len(work.start), -1, np.intp)
        if collectives:
            collective[:] = [collectives.get(row, -1) for row in work.row.tolist()]
        latency, gap, source = on_time(work, self._host, supposed.late, source)
        if changes.chained is not None:
            latency, gap = np.where(changes.chained, NEVER, latency), np.where(changes.chained, 0.0, gap)
        duration = work.duration if changes.duration is None else changes.duration
        return Enqueued(
            work.item,
            latency,
            work.queue,
            gap,
            duration,
            source,
            lag,
            collective,
            leaving.with_read,
            leaving.left,
            leaving.spare,
            needed,
        )

    @property
    def on_processor(self) -> bool:
        """Whether a device is a processor, which the host works on, too."""
        devices = self.trace.meta.get("devices") or []
        return any(isinstance(one, dict) and one.get("processor") for one in devices)

    @property
    def replaceable(self) -> frozenset[int]:
        """The reads that may go with all they did, or be replaced by what does as much and does not wait."""
        return self.taken_out.fetching | self.taken_out.copying | self.counting

    @property
    def uploads(self) -> frozenset[int]:
        """The reads that are copies from pageable memory to the device."""
        return frozenset(number for number, _ in self.taken_out.uploads.values())

    @property
    def counting(self) -> frozenset[int]:
        """The reads that ask how many there are."""
        return self.taken_out.counting

    def _ends_of_steps(self) -> tuple[float, ...]:
        """When each step had ended, on the host and on the device."""
        reach = np.maximum.accumulate(np.append(0.0, self._work.end))
        marks = np.flatnonzero(self._host.row < 0).tolist()
        return tuple(max(float(self._host.began[item]), float(reach[self._first[item + 1]])) for item in marks)

    @property
    def worked(self) -> Intervals:
        """When any queue worked, ns since the origin."""
        return union(self._work.start.astype(np.int64), self._work.end.astype(np.int64))

    def work(self, since: float, until: float, freed: Collection[int] = ()) -> tuple[float, int, int]:
        """Device work begun in [since, until) but by the reads in `freed`: its sum, ns, its pieces and their launches."""
        going = self.taken_out.launched_by(self.taken_out.whole.intersection(freed))
        of = (self._work.start >= since) & (self._work.start < until) & (going < 0)
        return float(self._work.duration[of].sum()), int(of.sum()), len(np.unique(self._work.enqueued[of]))

    @property
    def orders(self) -> bool:
        """Whether queues may have waited for each other although the recording shows nothing of it."""
        return self._work.queues > 1 and not self._work.telling

    def silent(self) -> list[Late]:
        """Each thread with the time in which it waited for the device, as it seems, though no recorded call did."""
        return silent(self.trace, self.launched, self._host, self._work, self._calls)

    @property
    def late(self) -> list[Late]:
        """Each queue and each thread with what was late there for no recorded reason."""
        return late(self.trace, self.held, self._host, self._work, self.returns, self._item_of)
