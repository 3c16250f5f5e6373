"""Training steps and how much of them the device worked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from statistics import median

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.intervals import covered, union
from syncscope.analysis.lost_steps import lost_steps
from syncscope.analysis.outlying import set_aside
from syncscope.analysis.rounds import Rounds, whole_rounds
from syncscope.analysis.waits import SLACK, Launches
from syncscope.model.report import Step, step_lengths
from syncscope.model.trace import Kind, Table, Trace
from syncscope.model.warming import warming

# What a program asks of the driver until it has warmed up: code, and memory.
UNSETTLED = re.compile(
    r"(?:Module|Library)Load|^(?:cuda|hip)(?:Malloc|Free|MallocHost|HostAlloc)$|^cuMem(?:Create|Alloc_v2)$"
)
COUNTED = 4  # steps from which on the first and the last are left out
QUIET = 5  # steps at least, of a recording that others disturbed
NUMBER = re.compile(r"#([0-9]{1,18})$")


def steps(trace: Trace, launched: Launches) -> tuple[Step, ...]:
    """The steps in the order of their start, each with the ns in which any queue of any device worked.

    They are those of the thread that has most of them, and follow one another: what begins within one is none of its own.
    """
    rows = _one_after_another(trace)
    start, end = trace.start[rows], trace.start[rows] + trace.duration[rows]
    busy = covered(union(trace.start[launched.row], (trace.start + trace.duration)[launched.row]), start, end)
    warming = trace.start[_warming(trace)]
    warms = np.searchsorted(warming, end) > np.searchsorted(warming, start)
    found = []
    for position, row in enumerate(rows.tolist()):
        number = NUMBER.search(trace.names[trace.name[row]])
        index = int(number[1]) if number else position
        found.append(Step(index, int(start[position]), int(end[position]), int(busy[position]), not warms[position]))
    if len({step.index for step in found}) < len(found):  # recordings put together, each of which numbers its own
        found = [replace(step, index=position) for position, step in enumerate(found)]
    found = found[:-1] if _is_stub(trace, found) else found
    lost = lost_steps(trace, found)
    whole = tuple(
        replace(step, lost=True, settled=False) if gone else step for step, gone in zip(found, lost, strict=True)
    )
    return set_aside(trace, launched, whole)


def _is_stub(trace: Trace, found: Sequence[Step]) -> bool:
    """Whether the last of few steps is none: torch.profiler ends a recording with a region in which nothing happened. Of more
    steps the last is not counted anyway."""
    if not 1 < len(found) < COUNTED:
        return False
    rows = np.flatnonzero(trace.kind != Kind.STEP)
    at = trace.start[rows]
    return not found[-1].busy and not bool(((at >= found[-1].start) & (at < found[-1].end)).any())


def _one_after_another(trace: Trace) -> NDArray[np.intp]:
    rows = trace.rows(Kind.STEP)
    if not len(rows):
        return rows
    rows = rows[np.array([lane.device < 0 for lane in trace.lanes], bool)[trace.lane[rows]]]
    number = Table[tuple[int | str, int | str]]()
    threads = np.array([number[lane.process, lane.thread] for lane in trace.lanes], np.intp)[trace.lane[rows]]
    rows = rows[threads == np.bincount(threads).argmax()] if len(rows) else rows
    end = trace.start[rows] + trace.duration[rows]
    kept, over = [], -(2**62)
    for position, start in enumerate(trace.start[rows].tolist()):
        if start >= over - SLACK:
            kept.append(position)
            over = int(end[position])
    following: NDArray[np.intp] = rows[np.array(kept, np.intp)]
    return following


def _warming(trace: Trace) -> NDArray[np.intp]:
    calls = trace.rows(Kind.CALL)
    asks = np.array([bool(UNSETTLED.search(name)) for name in trace.names], bool)[trace.name[calls]]
    found: NDArray[np.intp] = np.sort(np.concatenate([trace.rows(Kind.COMPILE), calls[asks]]))
    return found


def warming_part(trace: Trace, first: int, last: int) -> float:
    """The part of a time (ns of the trace) in which kernels were compiled or loaded, or the driver was asked for memory."""
    rows = _warming(trace)
    spent = covered(union(trace.start[rows], trace.end[rows]), np.array([first]), np.array([last]))
    return float(spent[0]) / (last - first) if last > first else 0.0


def done_once(found: Sequence[Step]) -> float:
    """The part of the counted steps that they took longer than as many settled ones would, for there are too few to leave those
    that warmed up out; 0 where none warmed up, or all did."""
    counted = [found[n] for n in alike(found)]
    settled = [step.end - step.start for step in counted if step.settled]
    spent = sum(step.end - step.start for step in counted)
    if len(counted) >= COUNTED or not 0 < len(settled) < len(counted):
        return 0.0
    return max(0.0, 1 - len(counted) * median(settled) / spent)


def alike(found: Sequence[Step]) -> range:
    """The steps that are alike, by position: without the first and the last, and without what follows the first to warm up.

    Of the settled steps that follow one another, the most; all where no two do. Fewer than four are all counted. Of these, the
    most that follow one another without an outlying one; and those that were not disturbed. Where they do not wait alike, those
    that make whole rounds, however long each is.
    """
    if any(step.in_round for step in found):
        whole = [n for n, step in enumerate(found) if step.in_round]
        return range(whole[0], whole[-1] + 1)
    settled = _settled(found)
    if len(settled) < COUNTED:
        return settled
    lengths = [float(found[n].end - found[n].start) for n in settled[1:-1]]
    counted = _without_outlying(found, settled[1 + warming(lengths) : -1])
    quiet = [n for n in counted if not found[n].disturbed]
    return range(quiet[0], quiet[-1] + 1) if quiet else counted


def counted_time(found: Sequence[Step]) -> tuple[int, int, list[int]]:
    """The time that figures of a step are of, from first to last ns, and how long each step of it is (`step_lengths`).

    Where none is like the others, all are counted.
    """
    counted = alike(found) or range(len(found))
    lengths = step_lengths(found)[counted.start : counted.stop]
    last = max(step.end for step in found[: counted.stop])
    return last - sum(lengths), last, lengths


def quietest(found: tuple[Step, ...], reads: Sequence[tuple[int, Hashable]]) -> tuple[Step, ...]:
    """The steps, all but the shortest half of those that are alike, which follow one another, marked as disturbed.

    `reads` are those made, each with the index of its step, and what it is. Where steps do not all read the same, a short one
    is one that reads less, and all are left as they are.
    """
    counted = alike(found)
    many = max(QUIET, len(counted) // 2)
    of = {found[n].index: Counter[Hashable]() for n in counted}
    for step, read in reads:
        if step in of:
            of[step][read] += 1
    if len(counted) <= many or any(made != of[found[counted[0]].index] for made in of.values()):
        return found
    spent = np.append(0, np.cumsum([found[n].end - found[n].start for n in counted]))
    first = counted[int(np.argmin(spent[many:] - spent[:-many]))]
    return tuple(replace(step, disturbed=not first <= n < first + many) for n, step in enumerate(found))


def in_whole_rounds(found: tuple[Step, ...], reads: Sequence[tuple[int, Hashable]]) -> tuple[tuple[Step, ...], Rounds]:
    """The steps, those that make whole rounds marked so where that makes a difference; `reads` as in `quietest`."""
    made = {step.index: Counter[Hashable]() for step in found}
    for step, read in reads:
        if step in made:
            made[step][read] += 1
    settled = _settled(found)
    candidates = _without_outlying(found, settled[1:-1]) if len(settled) >= COUNTED else settled
    rounds = whole_rounds([made[step.index] for step in found], candidates)
    if not (rounds.matters and rounds.number):
        return found, rounds._replace(counted=alike(found))
    return tuple(replace(step, in_round=n in rounds.counted) for n, step in enumerate(found)), rounds


def _without_outlying(found: Sequence[Step], counted: range) -> range:
    """The most of these steps that follow one another, none of them outlying; all where no two do."""
    best, since = range(0), counted.start
    for position in [*(n for n in counted if found[n].outlying), counted.stop]:
        best = max(best, range(since, position), key=len)
        since = position + 1
    return best if len(best) >= 2 else counted


def _settled(found: Sequence[Step]) -> range:
    best, since = range(0), 0
    for position, step in enumerate([*found, None]):
        if step is None or not step.settled:
            best = max(range(since, position), best, key=len)  # of two as long, the later
            since = position + 1
    if len(best) >= 2:
        return best
    return _whole(found) if any(step.lost for step in found) else range(len(found))


def _whole(found: Sequence[Step]) -> range:
    """The longest run of steps that lost nothing; all steps where every one did."""
    best, since = range(0), 0
    for position, step in enumerate([*found, None]):
        if step is None or step.lost:
            best = max(range(since, position), best, key=len)
            since = position + 1
    return best or range(len(found))


def as_worked(
    trace: Trace, launched: Launches, found: tuple[Step, ...], over: Sequence[float], began: int | None, whatever: bool
) -> tuple[Step, ...]:
    """The steps, each from where the work of the one before was `over` (ns of the trace) to where its own was, if the host ran
    ahead by more than a step, or the device `began` the first only when it had done earlier ones: the host then says how fast
    it can ask. Else as they are, or so `whatever` the host did: of recordings that stand side by side."""
    counted = alike(found)
    ahead = [over[n] - found[n].end for n in counted]
    far = ahead and median(ahead) > median(found[n].end - found[n].start for n in counted)
    if not found or (began is None and not far and not whatever):
        return found
    end = np.array(over, np.int64)
    start = np.append(found[0].start if began is None else began, end[:-1])
    busy = covered(union(trace.start[launched.row], trace.end[launched.row]), start, end)
    times = zip(found, start.tolist(), end.tolist(), busy.tolist(), strict=True)
    return tuple(replace(step, start=a, end=b, busy=time) for step, a, b, time in times)


def busy_share(trace: Trace, launched: Launches, found: tuple[Step, ...]) -> float | None:
    """The share of the counted steps (of the whole recording where there are none) in which the device worked."""
    return _share(trace, launched, found, launched.row) if len(launched.row) else None


def busy_by_device(trace: Trace, launched: Launches, found: tuple[Step, ...]) -> tuple[tuple[int, float], ...]:
    """The same of each device by its number, where several worked in that time; else nothing."""
    devices = np.array([lane.device for lane in trace.lanes], np.int64)[trace.lane[launched.row]]
    numbers = np.unique(devices).tolist()
    if len(numbers) < 2:
        return ()
    shares = [(n, _share(trace, launched, found, launched.row[devices == n])) for n in numbers]
    worked = tuple((n, share) for n, share in shares if share)
    return worked if len(worked) > 1 else ()


def _share(trace: Trace, launched: Launches, found: tuple[Step, ...], rows: NDArray[np.intp]) -> float | None:
    """The share of the counted time, or of the whole, in which any of these rows was at work."""
    first, last = counted_time(found)[:2] if found else window(trace, launched)
    worked = float(covered(union(trace.start[rows], trace.end[rows]), np.array([first]), np.array([last]))[0])
    return worked / (last - first) if last > first else None


def window(trace: Trace, launched: Launches) -> tuple[int, int]:
    """First and last moment of the recording, ns: from its first launch on, for savings are of as much; until the host's calls
    and operators, and the device's work, are over. Where nothing is launched, from the first of these on."""
    rows = np.concatenate([trace.rows(Kind.STEP, Kind.OP, Kind.READ, Kind.CALL), launched.row])
    if not len(rows):
        return 0, 0
    known = np.concatenate([launched.row, launched.call[launched.call >= 0]])
    since = known if len(known) else rows
    return int(trace.start[since].min()), int((trace.start[rows] + trace.duration[rows]).max())
