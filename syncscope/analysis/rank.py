"""One rank of a job, cut down to what the others need: its graph, its collectives and what it did between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.event_graph import event_graph_of
from syncscope.analysis.fidelity import fidelity_of, unforeseen_lines
from syncscope.analysis.graph import Graph
from syncscope.analysis.host_operators import Spent, spent
from syncscope.analysis.intervals import Intervals, covered, union
from syncscope.analysis.members import group_of
from syncscope.analysis.start_causes import COLLECTIVE
from syncscope.analysis.steps import alike
from syncscope.analysis.summary import by_line
from syncscope.analysis.waits import Launches
from syncscope.model.report import Read, Step
from syncscope.model.trace import Kind, Trace


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective on one rank; ns of the graph. `key` is step/group/kind/ordinal, the last of this rank's own counting:
    `matched` says which is which. `elements` is how many it sends, -1 where that is not known, `busy` for how long its device
    computes meanwhile. Where the recording is `told` nothing of who takes part, `groups` finds that by its `queue`, a number
    of this rank's own, and by of how many ranks the group is, 0 where that is not known, either.

    Since the one before it was launched, its host was `blocked` in reads, spent `launching` in launch calls, and `hosting`
    otherwise; `queued` is what passed from its own launch to its start. `work` is how long the thread that launched it was in
    each operator meanwhile.
    """

    key: str
    start: float
    end: float
    blocked: float = 0.0
    launching: float = 0.0
    hosting: float = 0.0
    queued: float = 0.0
    work: Spent = ()
    elements: int = -1
    busy: float = 0.0
    told: bool = True
    queue: int = -1
    group_size: int = 0


@dataclass(frozen=True, slots=True)
class Rank:
    """What a job's analysis needs of one rank. `origin` is time 0 of its graph, Unix ns; `error` the part of its own
    steps that is wrong in a replay or unexplained: None without device work. Of the reads (by number) that are `unforeseen`
    nobody can say what a step takes without them."""

    number: int
    origin: int
    graph: Graph
    collectives: tuple[Collective, ...]
    error: float | None
    name: str = ""
    world: int = 0  # how many ranks the job had, 0 where the recording does not say
    unforeseen: frozenset[int] = frozenset()
    devices: tuple[str, ...] = ()  # the names of those that its recording knows

    def counted(self) -> tuple[frozenset[int], int]:
        """The reads (by number) of the steps that a report counts, too, and how many steps these are; all without steps."""
        chosen = self.counted_steps()
        reads = frozenset(n for n, read in enumerate(self.graph.reads) if not chosen or read.step in chosen)
        return reads, max(1, len(chosen))

    def counted_steps(self) -> frozenset[int]:
        """The indices of the steps that a report counts, too; none where no step is marked."""
        steps = self.graph.steps
        return frozenset(steps[n].index for n in alike(steps) or range(len(steps)))


def common_steps(ranks: Sequence[Rank]) -> frozenset[int]:
    """The indices of the steps that figures of a job are of: a report of each rank counts them, else each rank has them."""
    if not ranks:
        return frozenset()
    counted = frozenset.intersection(*(rank.counted_steps() for rank in ranks))
    return counted or frozenset.intersection(*(frozenset(step.index for step in rank.graph.steps) for rank in ranks))


def rank_of(trace: Trace, number: int | None = None, name: str = "") -> Rank:
    """A rank out of its recording; its number is the recording's, if none is given."""
    event_graph = event_graph_of(trace)
    rows, keys = _collectives(trace, event_graph.launched, event_graph.marked)
    graph = event_graph.graph(collectives={row: i for i, row in enumerate(rows)})
    trusted = fidelity_of(event_graph, graph)
    members = list(by_line(event_graph.reads).values())
    unforeseen = unforeseen_lines(event_graph, event_graph.graph(), members) if event_graph.selections else ()
    if number is None:
        number = int(trace.meta.get("rank", -1))
    return Rank(
        number=number,
        origin=int(trace.meta.get("origin_ns", 0)) + graph.origin,
        graph=graph,
        collectives=_spans(trace, event_graph.launched, event_graph.reads, rows, keys, graph.origin),
        error=None if trusted.error is None else max(trusted.error, trusted.unexplained),
        name=name,
        world=int(trace.meta.get("world_size", 0)),
        unforeseen=frozenset(read for line in unforeseen for read in members[line]),
        devices=device_names(trace),
    )


def device_names(trace: Trace) -> tuple[str, ...]:
    """The names of the devices that a recording knows, each once."""
    known = trace.meta.get("devices") or []
    return tuple(dict.fromkeys(str(one["name"]) for one in known if isinstance(one, dict) and one.get("name")))


def _collectives(trace: Trace, launched: Launches, steps: tuple[Step, ...]) -> tuple[list[int], list[str]]:
    """Rows of the collectives in the order of their launch, and a key for each: step, process group, kind, ordinal."""
    kernels = (trace.kind[launched.row] == Kind.KERNEL) & _is_collective(trace, launched)
    rows, calls = launched.row[kernels], launched.call[kernels]
    since = np.where(calls >= 0, trace.start[calls], trace.start[rows])
    order = np.argsort(since, kind="stable")
    begins = [s.start for s in steps]
    counts: dict[str, int] = defaultdict(int)
    keys = []
    for row, at in zip(rows[order].tolist(), since[order].tolist(), strict=True):
        position = int(np.searchsorted(begins, at, side="right")) - 1
        step = steps[position].index if position >= 0 else -1
        known = trace.known(row)
        kind = known.collective or trace.names[trace.name[row]].partition("(")[0]
        base = f"{step}/{group_of(known, trace.meta) or ''}/{kind}"
        keys.append(f"{base}/{counts[base]}")
        counts[base] += 1
    return rows[order].tolist(), keys


def _is_collective(trace: Trace, launched: Launches) -> NDArray[np.bool_]:
    """Which of the launched work is called like a collective."""
    is_one = np.array([bool(COLLECTIVE.search(name)) for name in trace.names], bool)
    return is_one[trace.name[launched.row]]


def _computing(trace: Trace, launched: Launches) -> Intervals:
    """When the device computes."""
    rows = launched.row[(trace.kind[launched.row] == Kind.KERNEL) & ~_is_collective(trace, launched)]
    return union(trace.start[rows], trace.end[rows])


def _spans(
    trace: Trace, launched: Launches, reads: tuple[Read, ...], rows: list[int], keys: list[str], origin: int
) -> tuple[Collective, ...]:
    call_of = dict(zip(launched.row.tolist(), launched.call.tolist(), strict=True))
    calls = np.unique(launched.call[launched.call >= 0])
    begins, lengths = trace.start[calls], np.concatenate(([0], np.cumsum(trace.duration[calls])))
    computing = _computing(trace, launched)
    busy = covered(computing, trace.start[rows], trace.start[rows] + trace.duration[rows]).tolist()
    since, found = origin, []
    spans: list[tuple[int, int, int]] = []
    for row, key, meanwhile in zip(rows, keys, busy, strict=True):
        start, end = int(trace.start[row]), int(trace.start[row] + trace.duration[row])
        launch = int(trace.start[call_of[row]]) if call_of[row] >= 0 else start
        first, last = np.searchsorted(begins, [since, launch])
        launching = float(lengths[last] - lengths[first])
        blocked = float(sum(r.blocked for r in reads if since <= r.start < launch))
        hosting = max(0.0, launch - since - launching - blocked)
        times = (blocked, launching, hosting, float(start - launch))
        known = trace.known(row)
        one = Collective(key, float(start - origin), float(end - origin), *times, busy=float(meanwhile))
        found.append(
            replace(
                one,
                elements=-1 if known.elements is None else int(known.elements),
                told=group_of(known, trace.meta) is not None,
                queue=int(trace.lane[row]),
                group_size=int(known.group_size or 0),
            )
        )
        spans.append((int(trace.lane[call_of[row]]) if call_of[row] >= 0 else -1, since, max(since, launch)))
        since = max(since, launch)
    return tuple(replace(one, work=work) for one, work in zip(found, spent(trace, spans), strict=True))
