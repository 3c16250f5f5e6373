"""Where a step goes: when the device works, and why it stands still when it does not.

```text
host   [launch a][ wait for a....]  Python   [loader..]  [launch b]
queue              [=====a=======]                              [==b==]
                                 |<- credit ->|<---->|   |<---->|
                                      wait     loader      launch
```

While the host waits it sends the device nothing. Had it gone on, it would have been as far ahead as it was blocked, so of the
idle time that follows, so much is the wait's: its credit, which the newest wait gives first, and which lasts until it is used
up. What is left goes to what the host did then: it loaded data, was in calls that launch, or did something else, named by the
user's function or region around it. What began late for no recorded reason stays unexplained.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.event_graph import EventGraph
from syncscope.analysis.intervals import Intervals, covered, union
from syncscope.analysis.nesting import Nesting
from syncscope.analysis.reads import MODULE, carries
from syncscope.analysis.start_causes import COLLECTIVE
from syncscope.analysis.steps import alike, window
from syncscope.analysis.waits import SLACK, working_threads
from syncscope.model.report import Read, Step
from syncscope.model.trace import Kind, Trace
from syncscope.model.uses import Spent, StepUses, Use

LOADER = re.compile(r"enumerate\(DataLoader\)|dataloader\.py\(\d+\): __next__|dataloader_next|DataLoader\.__next__")
OURS = re.compile(
    r"^(?:ProfilerStep#|host (?:waits|reads))|^PyTorch Profiler"
)  # regions that say nothing of the user's code
LOOKED_UP = 3_000  # idle times that are given a function, the longest first
UNNAMED = "what was not recorded"
SHORT = "in many short pauses"
MANY = 12  # names behind a use
FULL = 0.95  # the part of a step from which the device counts as busy all the time
APART = 0.3  # the part from which the exchange with other ranks is worth a word
MOST = 0.5  # the part of the idle time from which one reason is the reason
Times = NDArray[np.int64]
USES = list(Use)


@dataclass(frozen=True, slots=True)
class _Idle:
    """Times in which no device worked, cut where steps begin and end; `work` is the device event (its row) that ended each, -1
    at the end of the recording, and `call` the one that launched that."""

    start: Times
    end: Times
    call: NDArray[np.intp]


def step_uses(trace: Trace, event_graph: EventGraph, origin: int) -> StepUses | None:
    """Where the counted steps go, and each step; without steps, where the recording goes. None without work of a device.

    `origin` is time 0 of the event graph, ns of the trace.
    """
    launched = event_graph.launched
    if not len(launched.row):
        return None
    steps = event_graph.steps or (Step(0, *window(trace, launched), 0),)
    counted = [steps[n] for n in alike(steps)] or list(steps)
    begin = np.array([s.start for s in steps], np.int64)
    end = np.array([s.end for s in steps], np.int64)
    first, last = counted[0].start, counted[-1].end
    windows = Intervals(np.append(begin, first), np.append(end, last))  # every step, then all that are counted
    table = np.zeros((len(USES), len(windows.start)))
    by: dict[Use, dict[str, float]] = {use: defaultdict(float) for use in USES}
    _working(trace, launched.row, windows, table)
    idle = _idle(trace, launched.row, launched.call, int(begin.min()), int(end.max()), np.concatenate([begin, end]))
    parts, names = _reasons(trace, event_graph, idle, origin)
    step = np.searchsorted(begin, idle.start, side="right") - 1
    within = (step >= 0) & (idle.end <= end[step])
    inside = (idle.start >= first) & (idle.end <= last)
    for use, time in parts.items():
        row = table[USES.index(use)]
        row[:-1] += np.bincount(step[within], time[within], len(begin))
        row[-1] += time[inside].sum()
    for use, name, position, part in names:
        if inside[position]:
            by[use][name] += part
    number = len(counted)
    spent = tuple(
        Spent(use, total / number, tuple((name, t / number) for name, t in longest(by[use])))
        for use, total in zip(USES, table[:, -1].tolist(), strict=True)
    )
    each = tuple(tuple(round(ns) for ns in row) for row in table[:, :-1].T.tolist()) if event_graph.steps else ()
    length = (last - first) / number
    return StepUses(length, spent, each, sentence(length, spent, "step" if event_graph.steps else "recording"))


def longest(times: Mapping[str, float]) -> list[tuple[str, float]]:
    """The names that took most, the longest first."""
    return sorted(times.items(), key=lambda pair: -pair[1])[:MANY]


def _working(trace: Trace, rows: NDArray[np.intp], windows: Intervals, table: NDArray[np.float64]) -> None:
    """The time in which the device computes, else copies, else exchanges with other ranks."""
    polite = np.array([bool(COLLECTIVE.search(name)) for name in trace.names], bool)[trace.name[rows]]
    kernel = trace.kind[rows] == Kind.KERNEL
    so_far, known = np.zeros(len(windows.start)), np.zeros(len(rows), bool)
    for use, of in ((Use.COMPUTE, kernel & ~polite), (Use.COPY, ~kernel), (Use.COLLECTIVE, kernel & polite)):
        known |= of
        worked = covered(union(trace.start[rows[known]], trace.end[rows[known]]), windows.start, windows.end)
        table[USES.index(use)] = worked - so_far
        so_far = worked.astype(float)


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
    bounds = np.unique(np.concatenate([start, end, cuts]))
    of = np.searchsorted(start, bounds, side="right") - 1
    inside = (of >= 0) & (bounds < end[of]) if len(start) else np.zeros(len(bounds), bool)
    at = np.flatnonzero(inside)
    return _Idle(bounds[at], bounds[at + 1] if len(at) else bounds[:0], call[of[at]])


def _reasons(
    trace: Trace, event_graph: EventGraph, idle: _Idle, origin: int
) -> tuple[dict[Use, NDArray[np.float64]], list[tuple[Use, str, int, float]]]:
    """The ns of each idle time that each use has, and names behind them: (use, name, number of the idle time, ns)."""
    launched = idle.call >= 0
    begun = np.where(launched, trace.start[idle.call], idle.end).clip(
        idle.start, idle.end
    )  # until when the host had not launched
    over = np.where(launched, trace.end[idle.call], idle.end)
    length = (idle.end - idle.start).astype(float)
    built = trace.rows(Kind.COMPILE)
    builds = union(trace.start[built], trace.end[built])
    building = covered(builds, idle.start, idle.end).astype(float)
    unknown = covered(_minus(_late(event_graph, origin), builds), idle.start, idle.end).astype(float)
    lanes = working_threads(trace, event_graph.launched)
    waits = _together((r.start, r.end) for r in event_graph.reads)
    loads = _of(trace, lanes, LOADER, Kind.OP, Kind.ANNOTATION, Kind.PYTHON)
    calls = _of(trace, lanes, None, Kind.CALL)
    names: list[tuple[Use, str, int, float]] = []

    waiting = covered(waits, idle.start, begun).astype(float)
    loading = covered(_minus(loads, waits), idle.start, begun).astype(float)
    calling = covered(_minus(calls, _sum(waits, loads)), idle.start, begun).astype(float)
    hosting = (begun - idle.start) - waiting - loading - calling
    launching = np.where(over > idle.start, idle.end - begun, 0).astype(float)
    queued = (idle.end - begun) - launching
    shares = {
        Use.WAIT: waiting,
        Use.LOADER: loading,
        Use.LAUNCH: calling + launching,
        Use.HOST: hosting,
        Use.QUEUE: queued,
    }
    lent = np.zeros(len(length))
    for read, position, ns in _credits(event_graph.reads, idle, length - unknown - building):
        lent[position] += ns
        names.append((Use.WAIT, _name(read), position, ns))
    rest = np.maximum(0.0, length - unknown - building - lent)
    parts = {use: np.where(length > 0, share / np.maximum(length, 1.0), 0.0) * rest for use, share in shares.items()}
    returned = parts[Use.WAIT].copy()
    parts[Use.WAIT] = parts[Use.WAIT] + lent
    parts[Use.UNEXPLAINED] = np.minimum(unknown, length)
    names += _returning(event_graph.reads, idle, returned)
    names += _calls(trace, idle, parts[Use.LAUNCH])
    names += _functions(trace, idle, begun, parts[Use.HOST])
    parts[Use.HOST] = parts[Use.HOST] + building
    names += ((Use.HOST, "building kernels", n, float(building[n])) for n in np.flatnonzero(building > 0).tolist())
    return parts, names


def _late(event_graph: EventGraph, origin: int) -> Intervals:
    """When a queue had not begun or a thread not returned for no recorded reason, ns of the trace."""
    found = event_graph.late
    if not found:
        return union(np.zeros(0, np.int64), np.zeros(0, np.int64))
    start = np.concatenate([late.start for late in found]).astype(np.int64) + origin
    end = np.concatenate([late.end for late in found]).astype(np.int64) + origin
    return union(start, end)


def _together(spans: Iterable[tuple[int, int]]) -> Intervals:
    start, end = np.array(list(spans), np.int64).reshape(-1, 2).T
    return union(start, end)


def _of(trace: Trace, lanes: set[int], pattern: re.Pattern[str] | None, *kinds: Kind) -> Intervals:
    """When any of these lanes was in an event of these kinds, by name where there is a `pattern`."""
    rows = trace.rows(*kinds)
    rows = rows[np.isin(trace.lane[rows], list(lanes))]
    if pattern is not None:
        rows = rows[np.array([bool(pattern.search(name)) for name in trace.names], bool)[trace.name[rows]]]
    return union(trace.start[rows], trace.end[rows])


def _sum(one: Intervals, other: Intervals) -> Intervals:
    return union(np.concatenate([one.start, other.start]), np.concatenate([one.end, other.end]))


def _minus(one: Intervals, other: Intervals) -> Intervals:
    """What one covers and the other does not."""
    bounds = np.unique(np.concatenate([*one, *other]))
    if len(bounds) < 2:
        return one
    start, end = bounds[:-1], bounds[1:]
    kept = (covered(one, start, end) > 0) & (covered(other, start, end) == 0)
    return union(start[kept], end[kept])


def _credits(reads: Sequence[Read], idle: _Idle, open_: NDArray[np.float64]) -> Iterable[tuple[Read, int, float]]:
    """What of each idle time a wait before it lent: (read, number of the idle time, ns)."""
    waiting = sorted((r.start + r.blocked, n) for n, r in enumerate(reads) if r.blocked > 0)
    credit: list[list[float]] = []  # number of the read and what it has left, the newest last
    at = 0
    for position, (start, left) in enumerate(zip(idle.start.tolist(), open_.tolist(), strict=True)):
        while at < len(waiting) and waiting[at][0] <= start + SLACK:
            credit.append([waiting[at][1], float(reads[waiting[at][1]].blocked)])
            at += 1
        while credit and left > 0:
            lent = min(left, credit[-1][1])
            yield reads[int(credit[-1][0])], position, lent
            left -= lent
            credit[-1][1] -= lent
            if credit[-1][1] <= 0:
                credit.pop()


def _name(read: Read) -> str:
    where = f"{read.place} " if read.place else f"in {read.module} " if read.module else ""
    return f"{where}{read.op}"


def _returning(reads: Sequence[Read], idle: _Idle, times: NDArray[np.float64]) -> Iterable[tuple[Use, str, int, float]]:
    """The reads in which the host still was, by idle time."""
    starts = [read.start for read in reads]
    for position in np.flatnonzero(times > 0).tolist():
        at = bisect_right(starts, int(idle.end[position])) - 1
        yield Use.WAIT, _name(reads[max(at, 0)]), position, float(times[position])


def _calls(trace: Trace, idle: _Idle, times: NDArray[np.float64]) -> Iterable[tuple[Use, str, int, float]]:
    """The calls that launched what ended each idle time."""
    for position in np.flatnonzero((times > 0) & (idle.call >= 0)).tolist():
        yield Use.LAUNCH, trace.names[trace.name[idle.call[position]]], position, float(times[position])


def _functions(
    trace: Trace, idle: _Idle, begun: Times, times: NDArray[np.float64]
) -> Iterable[tuple[Use, str, int, float]]:
    """What the host was in, in the middle of the longest idle times."""
    around = Nesting(trace, Kind.PYTHON, Kind.ANNOTATION, Kind.OP)
    steps = trace.rows(Kind.STEP)
    main = int(trace.lane[steps[0]]) if len(steps) else -1
    order = np.argsort(-times, kind="stable")
    for rank, position in enumerate(order[times[order] > 0].tolist()):
        ns = float(times[position])
        if rank >= LOOKED_UP:
            yield Use.HOST, SHORT, position, ns
            continue
        middle = int(idle.start[position] + begun[position]) // 2
        call = int(idle.call[position])
        lanes = dict.fromkeys([int(trace.lane[call]), main] if call >= 0 else [main])
        found = (user(trace, around.around(lane, middle, middle)) for lane in lanes if lane >= 0)
        yield Use.HOST, next((name for name in found if name), UNNAMED), position, ns


def user(trace: Trace, chain: Sequence[int]) -> str:
    """The innermost function of the user's among these events (outermost first), else region, else the outermost operator."""
    region, operator = "", ""
    for row in reversed(chain):
        name, place, kind = trace.names[trace.name[row]], int(trace.place[row]), trace.kind[row]
        if kind == Kind.PYTHON and place >= 0 and not carries(trace.places[place].path) and not MODULE.match(name):
            return f"{name.rpartition(': ')[2]} ({trace.places[place]})"
        if kind == Kind.ANNOTATION and not OURS.match(name):
            region = region or name
        if kind == Kind.OP:
            operator = name
    return region or operator


def sentence(step: float, spent: Sequence[Spent], per: str = "step") -> str:
    """What follows from where a step goes."""
    time = {one.use: one.time for one in spent}
    idle = sum(ns for use, ns in time.items() if use.is_idle)
    busy = 1 - idle / step if step else 1.0
    if time[Use.COLLECTIVE] > max(idle, APART * step):
        return (
            f"For {time[Use.COLLECTIVE] / step:.0%} of a {per} the device does nothing but exchange with other ranks, or "
            "wait for them: the recordings of all ranks together say for whom."
        )
    if busy >= FULL:
        return f"The device works for {busy:.0%} of a {per}: only less work for it makes the {per} shorter."
    first = max((one for one in spent if one.use.is_idle), key=lambda one: one.time)
    known = [pair for pair in first.by if pair[0] not in (UNNAMED, SHORT)]
    most = f", most of it in {known[0][0]}" if known and known[0][1] > MOST * first.time else ""
    waited = time[Use.WAIT]
    beside = f"; for {waited / idle:.0%}, because it had waited" if waited > (1 - FULL) * step else ""
    why = {
        Use.WAIT: f"because the host had waited{most.replace(' in ', ' at ', 1)}",
        Use.LOADER: f"because the host loads data{beside or ': waits are not what holds this loop up'}",
        Use.LAUNCH: f"because the host launches more slowly than the device works{beside or ': fewer, larger kernels help'}",
        Use.HOST: f"because the host does other work{most}{beside}",
        Use.QUEUE: "between kernels that were enqueued already",
        Use.UNEXPLAINED: "and nothing that was recorded says why",
    }[first.use]
    part = f"{first.time / idle:.0%}"
    return f"The device has nothing to do for {1 - busy:.0%} of a {per}. For {part} of that it stands still {why}."
