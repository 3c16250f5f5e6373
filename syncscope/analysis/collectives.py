"""The collectives of one rank: when each ran, of which group it is, and what the rank did since the one before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.event_graph import EventGraph
from syncscope.analysis.host_operators import HostOperators, Spent
from syncscope.analysis.intervals import Intervals, covered, union
from syncscope.analysis.lines_between import LinesBetween, SpentAt
from syncscope.analysis.meeting_key import OUTSIDE, MeetingKey, OfKind
from syncscope.analysis.members import SaidByOperators, group_of
from syncscope.analysis.start_causes import COLLECTIVE
from syncscope.analysis.waits import Launches, enqueued_before
from syncscope.model.detail import Detail
from syncscope.model.trace import Kind, Trace


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective on one rank; ns of the graph. Its `key` is by this rank's own counting: `matched` says which is
    which. `elements` is how many it sends, -1 where that is not known, `busy` for how long its device
    computes meanwhile. Where the recording is `told` nothing of who takes part, `groups` finds that by its `queue`, a number
    of this rank's own, and by of how many ranks the group is, 0 where that is not known, either.

    Since the one before it was launched, its host was `blocked` in reads, spent `launching` in launch calls, and `hosting`
    otherwise; `queued` is what passed from its own launch to its start. `work` is how long the thread that launched it was in
    each operator meanwhile, `lines` how long the host was at each line. `device` is what the device worked since the one before
    it began, by line, or by kernel where no line is known; `idle` is for how long it had nothing to do since that ended.
    """

    key: MeetingKey
    start: float
    end: float
    blocked: float = 0.0
    launching: float = 0.0
    hosting: float = 0.0
    queued: float = 0.0
    work: Spent = ()
    lines: SpentAt = ()
    device: SpentAt = ()
    elements: int = -1
    busy: float = 0.0
    idle: float = 0.0
    told: bool = True
    queue: int = -1
    group_size: int = 0


class Numbered(NamedTuple):
    """The row of a collective, its key, and what is known of it."""

    row: int
    key: MeetingKey
    known: Detail


def numbered(trace: Trace, event_graph: EventGraph) -> list[Numbered]:
    """The collectives in the order of their launch, with a key for each.

    What was enqueued before the recording is of no step of it: who came late to that lies before, too.
    """
    launched, steps = event_graph.launched, event_graph.marked
    kernels = (trace.kind[launched.row] == Kind.KERNEL) & is_collective(trace)[launched.row]
    kernels &= ~enqueued_before(trace, launched)
    rows, calls = launched.row[kernels], launched.call[kernels]
    since = np.where(calls >= 0, trace.start[calls], trace.start[rows])
    order = np.argsort(since, kind="stable")
    begins, asked = [s.start for s in steps], SaidByOperators(trace)
    counts: dict[OfKind, int] = defaultdict(int)
    found = []
    for row, call, at in zip(rows[order].tolist(), calls[order].tolist(), since[order].tolist(), strict=True):
        position = int(np.searchsorted(begins, at, side="right")) - 1
        step = steps[position].index if position >= 0 else OUTSIDE
        known = asked.known(row, call)
        kind = known.collective or trace.names[trace.name[row]].partition("(")[0]
        base = step, group_of(known, trace.meta) or "", kind
        found.append(Numbered(row, MeetingKey(*base, counts[base]), known))
        counts[base] += 1
    return found


def is_collective(trace: Trace) -> NDArray[np.bool_]:
    """Which events are called like a collective."""
    of_name = np.array([bool(COLLECTIVE.search(name)) for name in trace.names], bool)
    found: NDArray[np.bool_] = of_name[trace.name] if len(of_name) else np.zeros(len(trace), bool)
    return found


def _computing(trace: Trace, launched: Launches) -> Intervals:
    """When the device computes."""
    rows = launched.row[(trace.kind[launched.row] == Kind.KERNEL) & ~is_collective(trace)[launched.row]]
    return union(trace.start[rows], trace.end[rows])


def _idle(trace: Trace, launched: Launches, rows: Sequence[int]) -> list[float]:
    """For how long the device had nothing to do from the end of each collective's one before to its start; 0 of the first."""
    working = union(trace.start[launched.row], trace.end[launched.row])
    ends, starts = trace.end[rows[:-1]], trace.start[rows[1:]]
    return [0.0, *np.maximum(0, starts - ends - covered(working, ends, starts)).astype(float).tolist()][: len(rows)]


def collectives(
    trace: Trace, event_graph: EventGraph, these: Sequence[Numbered], origin: int, host: HostOperators
) -> tuple[Collective, ...]:
    """These collectives with what the rank did before each."""
    rows = [one.row for one in these]
    launched, reads = event_graph.launched, event_graph.reads
    call_of = dict(zip(launched.row.tolist(), launched.call.tolist(), strict=True))
    calls = np.unique(launched.call[launched.call >= 0])
    waits = union(
        np.array([r.start for r in reads], np.int64), np.array([r.start + r.blocked for r in reads], np.int64)
    )
    inside = trace.duration[calls] - covered(
        waits, trace.start[calls], trace.end[calls]
    )  # a copy that waits is one, too
    begins, lengths = trace.start[calls], np.concatenate(([0], np.cumsum(inside)))
    computing = _computing(trace, launched)
    busy = covered(computing, trace.start[rows], trace.start[rows] + trace.duration[rows]).tolist()
    idle = _idle(trace, launched, rows)
    since, found = origin, []
    spans: list[tuple[int, int, int]] = []
    for (row, key, known), meanwhile, nothing in zip(these, busy, idle, strict=True):
        start, end = int(trace.start[row]), int(trace.start[row] + trace.duration[row])
        launch = int(trace.start[call_of[row]]) if call_of[row] >= 0 else start
        first, last = np.searchsorted(begins, [since, launch])
        launching = float(lengths[last] - lengths[first])
        blocked = float(sum(r.blocked for r in reads if since <= r.start < launch))
        hosting = max(0.0, launch - since - launching - blocked)
        times = (blocked, launching, hosting, float(start - launch))
        one = Collective(key, float(start - origin), float(end - origin), *times, busy=float(meanwhile), idle=nothing)
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
    by_line = LinesBetween(trace, event_graph)
    on_device = by_line.of_device([trace.start[row] for row in rows])
    return tuple(
        replace(one, work=work, lines=by_line.of_host(since, until), device=device)
        for one, work, (_, since, until), device in zip(found, host.spent(spans), spans, on_device, strict=True)
    )
