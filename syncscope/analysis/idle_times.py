"""Every time in which no device worked, and whose it is: a wait's, the loader's, a launch's, other work's of the host.

```text
host   [launch a][ wait for a....]  Python   [loader..]  [launch b]
queue              [=====a=======]                              [==b==]
                                 |<- credit ->|<---->|   |<---->|
                                      wait     loader      launch
```

While the host waits it sends the device nothing. Had it gone on, it would have been as far ahead as it was blocked, so of the
idle time that follows, so much is the wait's: its credit, which the newest wait gives first, and which lasts until it is used
up, at most through the next step. What is left goes to what the host did then: it loaded data, was in calls that launch, or did
something else, named by the user's function or region around it. What began late for no recorded reason stays unexplained, and
so does the time in which a queue was still busy with what was enqueued before the recording.

This is the one account of idle time: what a step goes to, what a wait and what a line leave the device idle are sums of it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.event_graph import EventGraph
from syncscope.analysis.first_use import ONCE, asked_times
from syncscope.analysis.graph import NEVER
from syncscope.analysis.intervals import Intervals, covered, distinct, minus, union
from syncscope.analysis.nesting import Nesting
from syncscope.analysis.reads import MODULE, OURS, carries
from syncscope.analysis.steps import window
from syncscope.analysis.waits import SLACK, working_threads
from syncscope.model.report import Read, Step
from syncscope.model.trace import Kind, Table, Trace
from syncscope.model.uses import Nameless, Use

LOADER = re.compile(r"enumerate\(DataLoader\)|dataloader\.py\(\d+\): __next__|dataloader_next|DataLoader\.__next__")
LOOKED_UP = 3_000  # idle times that are given a function, the longest first
PYTHON, ANNOTATION, OP = int(Kind.PYTHON), int(Kind.ANNOTATION), int(Kind.OP)
Times = NDArray[np.int64]
Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NamedTimes:
    """What is behind the time of a use: idle time `position[i]` has `ns[i]` of it for what is called `names[code[i]]`."""

    use: Use
    names: Sequence[str]
    code: NDArray[Any]
    position: NDArray[np.intp]
    ns: Numbers


@dataclass(frozen=True, slots=True)
class IdleTimes:
    """Times in which no device worked, ns, cut where steps begin and end.

    `call` is the row of the call that launched what ended each, -1 at the end of the recording and where that is not known.
    `parts` are the ns of each that each use has. Read `read[n]` (by number) has `lent[n]` ns of time `position[n]`.
    `names` says what is behind the other uses, of which those of `first_use` are done once.
    """

    start: Times
    end: Times
    call: NDArray[np.intp]
    parts: Mapping[Use, Numbers]
    read: NDArray[np.intp]
    position: NDArray[np.intp]
    lent: Numbers
    names: tuple[NamedTimes, ...]
    first_use: frozenset[str] = frozenset()

    def within(self, first: int, last: int) -> NDArray[np.bool_]:
        """Which of them lie between two moments at which they are cut."""
        return (self.start >= first) & (self.end <= last)

    def after_reads(self, reads: int, inside: NDArray[np.bool_] | None = None) -> Numbers:
        """The ns that each read has of them all, or of those `inside`."""
        counted = slice(None) if inside is None else inside[self.position]
        return np.bincount(self.read[counted], self.lent[counted], reads).astype(float)


def name_of(read: Read) -> str:
    """A wait in a list: its line, else its module, and what waits."""
    where = f"{read.place.shortly} " if read.place else f"in {read.module} " if read.module else ""
    return f"{where}{read.op}"


def idle_times(trace: Trace, event_graph: EventGraph, origin: int) -> IdleTimes | None:
    """The idle times of a recording, from its first step to its last; None without work of a device.

    `origin` is time 0 of the event graph, ns of the trace.
    """
    launched = event_graph.launched
    if not len(launched.row):
        return None
    steps = event_graph.steps or (Step(0, *window(trace, launched), 0),)
    begin = np.array([s.start for s in steps], np.int64)
    end = np.array([s.end for s in steps], np.int64)
    idle = _idle(trace, launched.row, launched.call, int(begin.min()), int(end.max()), np.concatenate([begin, end]))
    return _shared_out(trace, event_graph, idle, origin)


@dataclass(frozen=True, slots=True)
class _Idle:
    start: Times
    end: Times
    call: NDArray[np.intp]


def _idle(trace: Trace, rows: NDArray[np.intp], calls: NDArray[np.intp], since: int, until: int, cuts: Times) -> _Idle:
    """The times from `since` to `until` in which no work ran, cut at the `cuts`."""
    worked = union(trace.start[rows], trace.end[rows])
    start = np.concatenate(([since], worked.end)).clip(since, until)
    end = np.concatenate((worked.start, [until])).clip(since, until)
    by_start = np.argsort(trace.start[rows], kind="stable")
    ending = by_start[np.searchsorted(trace.start[rows][by_start], worked.start)]
    call = np.append(calls[ending], -1)
    kept = end > start
    start, end, call = start[kept], end[kept], call[kept]
    bounds = distinct(np.concatenate([start, end, cuts]))
    of = np.searchsorted(start, bounds, side="right") - 1
    inside = (of >= 0) & (bounds < end[of]) if len(start) else np.zeros(len(bounds), bool)
    at = np.flatnonzero(inside)
    return _Idle(bounds[at], bounds[at + 1] if len(at) else bounds[:0], call[of[at]])


def _shared_out(trace: Trace, event_graph: EventGraph, idle: _Idle, origin: int) -> IdleTimes:
    """Each idle time given to its uses, reads and names."""
    launched = idle.call >= 0
    # until when the host had not launched
    begun = np.where(launched, trace.start[idle.call], idle.end).clip(idle.start, idle.end)
    length = (idle.end - idle.start).astype(float)
    built = trace.rows(Kind.COMPILE)
    builds = union(trace.start[built], trace.end[built])
    once = {"building kernels": builds}
    waiting = np.array([wait.row for wait in event_graph.held], np.intp)
    asked = asked_times(trace, event_graph.launched, waiting)
    once |= {each.words: minus(times, builds) for each, times in asked.items()}
    first = frozenset(each.words for each in asked if each.what in ONCE)
    taken = union(*(np.concatenate([getattr(times, side) for times in once.values()]) for side in ("start", "end")))
    part = {name: covered(times, idle.start, idle.end).astype(float) for name, times in once.items()}
    building = np.sum(list(part.values()), axis=0)
    earlier = covered(minus(_earlier(event_graph, origin), taken), idle.start, idle.end).astype(float)
    late = covered(minus(_late(event_graph, origin), taken), idle.start, idle.end).astype(float)
    unknown = np.maximum(earlier, late)
    shares = _shares(trace, event_graph, idle, begun, taken)
    known = np.maximum(np.sum(list(shares.values()), axis=0), 1.0)
    credit = list(_credits(event_graph.reads, idle, length - unknown - building, _lapses(event_graph)))
    lent = np.bincount([position for _, position, _ in credit], [ns for *_, ns in credit], len(length)).astype(float)
    rest = np.maximum(0.0, length - unknown - building - lent)
    parts = {use: shares.pop(use) / known * rest for use in list(shares)}
    returned = parts[Use.WAIT].copy()
    parts[Use.WAIT] = parts[Use.WAIT] + lent
    parts[Use.UNEXPLAINED] = np.minimum(unknown, length)
    credit += _returning(event_graph.reads, idle, returned)
    del late, unknown, length, lent, rest, returned  # of a long recording each is some megabytes
    names = (
        _one_name(Use.UNEXPLAINED, Nameless.EARLIER, earlier),
        _calls(trace, idle, parts[Use.LAUNCH]),
        _functions(trace, idle, begun, parts[Use.HOST]),
        *(_one_name(Use.HOST, name, times) for name, times in part.items()),
    )
    parts[Use.HOST] = parts[Use.HOST] + building
    read, position, ns = np.array(credit, float).reshape(-1, 3).T
    lent_of = read.astype(np.intp), position.astype(np.intp), ns
    return IdleTimes(idle.start, idle.end, idle.call, parts, *lent_of, names, first)


def _shares(trace: Trace, event_graph: EventGraph, idle: _Idle, begun: Times, once: Intervals) -> dict[Use, Numbers]:
    """What the host did in each idle time besides what it does `once`, ns; until a moment in it nothing had `begun` to launch
    what ended it."""
    over = np.where(idle.call >= 0, trace.end[idle.call], idle.end)
    waits = _together((r.start, r.end) for r in event_graph.reads)
    loads = loading_times(trace, event_graph)
    calls = _of(trace, working_threads(trace, event_graph.launched), None, Kind.CALL)

    waiting = covered(waits, idle.start, begun).astype(float)
    loading = covered(minus(loads, waits), idle.start, begun).astype(float)
    taken = union(np.append(waits.start, loads.start), np.append(waits.end, loads.end))
    calling = covered(minus(minus(calls, taken), once), idle.start, begun).astype(float)
    besides = minus(once, taken)
    hosting = (begun - idle.start) - waiting - loading - calling - covered(besides, idle.start, begun)
    launched = (idle.end - begun) - covered(besides, begun, idle.end)
    launching = np.where(over > idle.start, launched, 0).astype(float)
    queued = launched - launching
    return {
        Use.WAIT: waiting,
        Use.LOADER: loading,
        Use.LAUNCH: calling + launching,
        Use.HOST: hosting,
        Use.QUEUE: queued,
    }


def loading_times(trace: Trace, event_graph: EventGraph) -> Intervals:
    """When a thread that launches work was in the data loader."""
    lanes = working_threads(trace, event_graph.launched)
    return _of(trace, lanes, LOADER, Kind.OP, Kind.ANNOTATION, Kind.PYTHON)


def _late(event_graph: EventGraph, origin: int) -> Intervals:
    """When a queue had not begun or a thread not returned for no recorded reason, ns of the trace."""
    found = event_graph.late
    if not found:
        return union(np.zeros(0, np.int64), np.zeros(0, np.int64))
    start = np.concatenate([late.start for late in found]).astype(np.int64) + origin
    end = np.concatenate([late.end for late in found]).astype(np.int64) + origin
    return union(start, end)


def _earlier(event_graph: EventGraph, origin: int) -> Intervals:
    """Until when a queue was busy with what was enqueued before the recording, ns of the trace."""
    until = max((time for time in event_graph.device_work.free.tolist() if time > NEVER), default=0.0)
    return _together([(origin, origin + int(until))] if until > 0 else [])


def _together(spans: Iterable[tuple[int, int]]) -> Intervals:
    start, end = np.array(list(spans), np.int64).reshape(-1, 2).T
    return union(start, end)


def _of(trace: Trace, lanes: set[int], pattern: re.Pattern[str] | None, *kinds: Kind) -> Intervals:
    """When any of these lanes was in an event of these kinds, by name where there is a `pattern`."""
    rows = trace.rows(*kinds)
    chosen = np.zeros(len(trace.lanes), bool)
    chosen[list(lanes)] = True
    rows = rows[chosen[trace.lane[rows]]]
    if pattern is not None:
        rows = rows[np.array([bool(pattern.search(name)) for name in trace.names], bool)[trace.name[rows]]]
    return union(trace.start[rows], trace.end[rows])


def _lapses(event_graph: EventGraph) -> list[int]:
    """Until when each wait lends: to the end of the step behind its own, but in an outlying one, as with a validation in it,
    to its own end, for what is waited for once in many steps is no share of those behind it."""
    steps, reads = event_graph.steps, event_graph.reads
    if not steps:
        return [1 << 62] * len(reads)
    end = np.maximum.accumulate([step.end for step in steps])
    own = np.searchsorted(end, [read.start for read in reads], side="right").clip(max=len(steps) - 1)
    behind = own + ~np.array([step.outlying for step in steps])[own]
    lapses: list[int] = end[behind.clip(max=len(steps) - 1)].tolist()
    return lapses


def _credits(
    reads: Sequence[Read], idle: _Idle, open_: Numbers, lapses: Sequence[int]
) -> Iterator[tuple[int, int, float]]:
    """What of each idle time a wait before it lent: (read, number of the idle time, ns)."""
    waiting = sorted((r.start + r.blocked, n) for n, r in enumerate(reads) if r.blocked > 0)
    credit: list[list[float]] = []  # number of the read and what it has left, the newest last
    at = 0
    for position, (start, left) in enumerate(zip(idle.start.tolist(), open_.tolist(), strict=True)):
        while at < len(waiting) and waiting[at][0] <= start + SLACK:
            credit.append([waiting[at][1], float(reads[waiting[at][1]].blocked)])
            at += 1
        if credit and lapses[int(credit[-1][0])] <= start:  # and so have those before it
            credit.clear()
        while credit and left > 0:
            lent = min(left, credit[-1][1])
            yield int(credit[-1][0]), position, lent
            left -= lent
            credit[-1][1] -= lent
            if credit[-1][1] <= 0:
                credit.pop()


def _one_name(use: Use, name: str, times: Numbers) -> NamedTimes:
    """What of each idle time has this name."""
    position = np.flatnonzero(times > 0)
    return NamedTimes(use, (name,), np.zeros(len(position), np.intp), position, times[position])


def _returning(reads: Sequence[Read], idle: _Idle, times: Numbers) -> Iterator[tuple[int, int, float]]:
    """The reads in which the host still was, by idle time."""
    starts = [read.start for read in reads]
    for position in np.flatnonzero(times > 0).tolist():
        at = bisect_right(starts, int(idle.end[position])) - 1
        yield max(at, 0), position, float(times[position])


def _calls(trace: Trace, idle: _Idle, times: Numbers) -> NamedTimes:
    """The calls that launched what ended each idle time."""
    position = np.flatnonzero((times > 0) & (idle.call >= 0))
    return NamedTimes(Use.LAUNCH, trace.names, trace.name[idle.call[position]], position, times[position])


def _functions(trace: Trace, idle: _Idle, begun: Times, times: Numbers) -> NamedTimes:
    """What the host was in, in the middle of the longest idle times."""
    around = Nesting(trace, Kind.PYTHON, Kind.ANNOTATION, Kind.OP)
    steps = trace.rows(Kind.STEP)
    main = int(trace.lane[steps[0]]) if len(steps) else -1
    order = np.argsort(-times, kind="stable")
    order = order[times[order] > 0]
    table = Table[str]()
    code = np.full(len(order), table[Nameless.PAUSES], np.intp)
    for rank, position in enumerate(order[:LOOKED_UP].tolist()):
        middle = int(idle.start[position] + begun[position]) // 2
        call = int(idle.call[position])
        lanes = dict.fromkeys([int(trace.lane[call]), main] if call >= 0 else [main])
        found = (user(trace, around.around(lane, middle, middle)) for lane in lanes if lane >= 0)
        code[rank] = table[next((name for name in found if name), Nameless.UNSEEN)]
    return NamedTimes(Use.HOST, tuple(table), code, order, times[order])


def user(trace: Trace, chain: Sequence[int]) -> str:
    """The innermost function of the user's among these events (outermost first), else region, else the outermost operator."""
    region, operator = "", ""
    for row in reversed(chain):
        name, place, kind = trace.names[trace.name[row]], int(trace.place[row]), int(trace.kind[row])
        if kind == PYTHON and place >= 0 and not carries(trace.places[place].path) and not MODULE.match(name):
            return f"{name.rpartition(': ')[2]} ({trace.places[place]})"
        if kind == ANNOTATION and not OURS.match(name):
            region = region or name
        if kind == OP:
            operator = name
    return region or operator
