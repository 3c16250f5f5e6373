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
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.backlog import first_step_began
from syncscope.analysis.changes import Added, After, Changes, How
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
        self._graphs: dict[tuple[object, ...], Graph] = {}
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
        collectives: Mapping[int, int] | None = None,
        late: After = "work",
        stays: bool = False,
        ordered: bool = False,
        gone: bool = False,
        slow: bool = False,
        added: Added = "known",
        changes: Changes | None = None,
        how: How = "waits",
    ) -> Graph:
        """What is replayed, without the time of the `recorder`, by default that of the whole graph.

        `collectives` numbers the work (by its row in the trace) that ends together with that of other ranks. What began
        `late` for no recorded reason begins as late after the `work` before it, or after its `launch`, or `never` is late;
        then waits return, too, as fast as such waits do. A read that is taken out goes with all it did, if it only fetched
        values or asked how many there are, and what follows is called as ever. If something `stays` in its place, a copy or the
        latter only waits for nothing, and some launches of short kernels do what the host did with a value that was fetched
        (`analysis.leaving`). With `ordered`, work of different queues keeps the order in which it was done (`analysis.orders`).
        With `gone`, every read goes with all it did, uploads aside. With `slow`, what the host's next work took beyond
        the usual goes, too: a host that slept goes on more slowly.
        What runs over the rows of a selection runs over all rows without it, as far as it is `known` to, or the `most` that may
        (`analysis.selections`). With `changes`, something else is otherwise, too. Of selections whose rewrite takes rows all
        the same the waits go; by `how` what takes the rows stays, as it is offered, or they are in fixed shapes; for the
        easiest, what lines launched before reads that ask for rows goes, too.
        """
        recorder = self.recorder if recorder is None else recorder
        chosen = self.selections + self._taking * (how == "fixed")
        added, stays = added if chosen else "nothing", stays and bool(self.replaceable)
        key = recorder, late, stays, ordered, gone, slow, added, how
        kept, changes = collectives is None and changes is None, changes or Changes()
        if kept and key in self._graphs:
            return self._graphs[key]
        host, work, targets = self._host, self._work, self.returns.targets
        returns = self.returns.prompt if late == "never" else self.returns.recorded
        source, lag = seen(work) if ordered else (work.source, work.lag)
        needed = np.zeros(len(work.start), bool)
        needed[[j for found in targets.values() for j in found]] = True
        needed[source[source >= 0]] = True
        collective = np.full(len(work.start), -1, np.intp)
        if collectives:
            collective[:] = [collectives.get(row, -1) for row in work.row.tolist()]
        gaps, cost = self.host_times(recorder)
        gaps = gaps if changes.gaps is None else changes.gaps
        cost = cost if changes.cost is None else changes.cost
        duration = work.duration if changes.duration is None else changes.duration
        latency, gap, source = on_time(work, host, late, source)
        out = self.taken_out
        going = out.whole - self.uploads if gone else out.fetching if stays else self.replaceable
        launching = np.where(host.holds, 0.0, cost + np.minimum(gaps, OPERATOR))
        leaving = Leaving(self.trace, self.reads, host, work, out, going, how, launching)
        leaving.clear(how, stays)
        leaving.select(chosen, added, stays)
        if changes.chained is not None:
            latency, gap = np.where(changes.chained, NEVER, latency), np.where(changes.chained, 0.0, gap)
        saved = Saved(
            slower=out.slower() if slow else np.zeros(len(host.row)),
            colder=out.colder(gaps, cost),
            anew={} if stays else {n: ns for n, ns in out.anew(most=gone).items() if n not in leaving.taking},
            spared=leaving.spared(recorder, stays, self._plain),
        )
        holding = Holding(host, self.reads, targets, returns, recorder.share, saved)
        holds = (host.row < 0) | host.holds
        launches = Enqueued(
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
        cost = np.where(work.launch[:-1] & ~holds, cost, 0.0)
        stream = folded(launches, gaps, cost, np.flatnonzero(holds), self.full.depth, holding.hold)
        graph = Graph(
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
            guessed=sum(w.guessed and bool(targets[w.row]) for w in self.held),
            ops=len(work.start),
            origin=host.origin,
            begin=self._begin,
            overlap=host.overlap,
        )
        if kept:
            self._graphs[key] = graph
        return graph

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
