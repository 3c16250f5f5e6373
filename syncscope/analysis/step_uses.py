"""Where a step goes: when the device works, and why it stands still when it does not (`analysis.idle_times`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.event_graph import EventGraph
from syncscope.analysis.idle_times import IdleTimes, name_of
from syncscope.analysis.intervals import Intervals, covered, union
from syncscope.analysis.start_causes import COLLECTIVE
from syncscope.analysis.steps import busy_by_device, counted_time, warming_part, window
from syncscope.model.report import Step, step_lengths
from syncscope.model.trace import Kind, Trace
from syncscope.model.uses import Nameless, Spent, StepUses, Use, exchange

MANY = 12  # names behind a use
FULL = 0.95  # the part of a step from which the device counts as busy all the time
WARM = 0.15  # the part of the time that may go to what a program does once
MOST = 0.5  # the part of the idle time from which one reason is the reason
USES = list(Use)


def counted_part(trace: Trace, event_graph: EventGraph) -> tuple[int, int, list[int]]:
    """The time that figures of a step are of, and its steps, as `counted_time` has it; without steps, the recording as one."""
    return counted_time(event_graph.steps or (Step(0, *window(trace, event_graph.launched), 0),))


def step_uses(trace: Trace, event_graph: EventGraph, idle: IdleTimes | None) -> StepUses | None:
    """Where the counted steps go, and each step; without steps, where the recording goes. None without work of a device."""
    launched = event_graph.launched
    if idle is None:
        return None
    steps = event_graph.steps or (Step(0, *window(trace, launched), 0),)
    first, last, lengths = counted_part(trace, event_graph)
    end = np.array([s.end for s in steps], np.int64)
    begin = end - np.array(step_lengths(steps), np.int64)
    windows = Intervals(np.append(begin, first), np.append(end, last))  # every step, then all that are counted
    table = np.zeros((len(USES), len(windows.start)))
    by: dict[Use, dict[str, float]] = {use: defaultdict(float) for use in USES}
    _working(trace, launched.row, windows, table)
    step = np.searchsorted(begin, idle.start, side="right") - 1
    within = (step >= 0) & (idle.end <= end[step])
    inside = idle.within(first, last)
    for use, time in idle.parts.items():
        row = table[USES.index(use)]
        row[:-1] += np.bincount(step[within], time[within], len(begin))
        row[-1] += time[inside].sum()
    for number, ns in enumerate(idle.after_reads(len(event_graph.reads), inside).tolist()):
        if ns:
            by[Use.WAIT][name_of(event_graph.reads[number])] += ns
    for told in idle.names:
        counted_too = inside[told.position]
        code, part = told.code[counted_too], told.ns[counted_too]
        sums = np.bincount(code, part).tolist()
        for each_code in np.unique(code).tolist():
            by[told.use][told.names[each_code]] += sums[each_code]
    number = len(lengths)
    spent = tuple(
        Spent(use, total / number, tuple((name, t / number) for name, t in longest(by[use])))
        for use, total in zip(USES, table[:, -1].tolist(), strict=True)
    )
    each = tuple(tuple(round(ns) for ns in row) for row in table[:, :-1].T.tolist()) if event_graph.steps else ()
    length = (last - first) / number
    warming = warming_part(trace, first, last)
    warming += sum(ns for name, ns in by[Use.HOST].items() if name in idle.first_use) / max(1, last - first)
    devices = busy_by_device(trace, launched, event_graph.steps)
    words = sentence(length, spent, "step" if event_graph.steps else "recording", warming, devices)
    return StepUses(length, spent, each, words, warming)


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


def sentence(
    step: float,
    spent: Sequence[Spent],
    per: str = "step",
    warming: float = 0.0,
    devices: Sequence[tuple[int, float]] = (),
) -> str:
    """What follows from where a step goes; for the part `warming` of it the program loaded kernels, or asked for memory. Of
    several `devices` each worked for that part of it."""
    time = {one.use: one.time for one in spent}
    idle = sum(ns for use, ns in time.items() if use.is_idle)
    busy = 1 - idle / step if step else 1.0
    if apart := exchange(step, spent):
        return (
            f"For {apart / step:.0%} of a {per} the device does nothing but exchange with other ranks, or "
            "wait for them: the recordings of all ranks together say for whom."
        )
    if busy >= FULL > max((share for _, share in devices), default=1.0):
        each = ", ".join(f"device {number} for {share:.0%}" for number, share in devices)
        return (
            f"One or the other of {len(devices)} devices works for {busy:.0%} of a {per}, {each}: they work by turns, and what "
            f"they do side by side makes the {per} shorter."
        )
    if busy >= FULL:
        return f"The device works for {busy:.0%} of a {per}: only less work for it makes the {per} shorter."
    first = max((one for one in spent if one.use.is_idle), key=lambda one: one.time)
    earlier = dict(first.by).get(Nameless.EARLIER, 0.0)
    if earlier > MOST * idle:
        return (
            f"For {earlier / step:.0%} of a {per} the device had work that was enqueued before the recording and is not in "
            "it: record from further back."
        )
    known = [pair for pair in first.by if not isinstance(pair[0], Nameless)]
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
    if warming > WARM:
        return (
            f"The device has nothing to do for {1 - busy:.0%} of a {per}. For {warming:.0%} of the {per} the host loads "
            "kernels, or asks the driver for memory, as at first use: record what comes after it."
        )
    part = f"{first.time / idle:.0%}"
    return f"The device has nothing to do for {1 - busy:.0%} of a {per}. For {part} of that it stands still {why}."
