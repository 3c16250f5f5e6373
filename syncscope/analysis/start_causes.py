"""Why each piece of device work began when it did, and not sooner.

Of what it could have waited for, the last to come about is the reason:

```text
LAUNCH     host  --[launch]          it began as long after its launch as launches take
           queue           \\[==]
QUEUE      queue  [===][==]          the work before it in its queue had just ended, or is of the same launch (a graph)
TOLD       queue  [===]              work of another queue had just ended: the driver recorded that it waited for it,
INFERRED   other       [==]          or the moment says so
FULL       queue  [=========]        kernels of another queue had the device to themselves
           other  launched   [==]
BEFORE            (nothing) [==]     the first of its queue, and the host has not waited yet: what was enqueued before the
                                     recording is not in it
NOTHING    queue  [===]      [==]    nothing that was recorded held it up
```

A launch takes its call and a latency. Both are the driver's own and differ from call to call; what exceeds three times the
usual latency and 20 us (`usual`) is none any more. A driver of OpenCL may collect commands until the host waits for them, so
that the wait is their launch. Work that is late for NOTHING is replayed as late after what ended last before it, for else
the recording would not be reproduced, and counted: `analysis.fidelity` says how much of a step rests on it.
"""

from __future__ import annotations

import re
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.graph import NEVER
from syncscope.analysis.hosts import Host
from syncscope.analysis.intervals import covered, union
from syncscope.analysis.waits import CLOCKS, SLACK, Launches, stream_waits
from syncscope.model.trace import Kind, Trace, numbers_used

BACK_TO_BACK = 4_000.0  # ns: a kernel that starts sooner after its predecessor was waiting for it,
SLOWEST_QUEUE = 60_000.0  # and so long after at most where the queue is slow: PoCL on 15 threads takes 10 to 31 us
HAND_OVER = 10_000  # ns: a kernel that starts sooner after one of another queue may have waited for that one,
ORDERED = 20_000  # and so long after where queues are known to have been made to wait (ROCm takes up to 18 us)
ODD = 20_000  # ns beyond three times the usual: a launch takes no longer by itself
LATENCY = 10_000.0  # ns from a launch to its work, where the recording hardly shows it
BATCH = 3  # calls after which a command that has not begun may have been kept back
SUBMISSION = 1_000_000  # ns from the wait that has commands submitted to the first of them
PASSING = 2_000  # ns from the end of work to the begin of work in another queue that waited for it
DEPTH = 1024  # CUDA's queues take at least so many launches before a launch blocks
SLOWEST = 1_000_000.0  # ns: no driver takes longer by itself
FEW = 20  # times of which one in twenty can be told
MOST = 0.9  # the part of a delay in which others worked, for the device to have been full
COLLECTIVE = re.compile(r"nccl|rccl|oneccl|^c10d|hccl", re.IGNORECASE)
WAIT_EVENT = re.compile(r"StreamWaitEvent")
STREAM_WAIT = re.compile(r"StreamWait(?:Event|Value)|EnqueueBarrier|EnqueueMarker")
Numbers = NDArray[np.float64]
Truths = NDArray[np.bool_]


class Cause(IntEnum):
    """What a piece of work waited for last."""

    LAUNCH = 0
    QUEUE = 1
    TOLD = 2
    INFERRED = 3
    FULL = 4
    BEFORE = 5
    NOTHING = 6


class DeviceWork:
    """Kernels, copies and fills in the order in which the host enqueued them, as columns.

    `start` and `duration` as recorded, ns since the host's origin; `item` is the call of the host that had it submitted and
    `enqueued` the one that asked for it, which is another where a driver keeps commands back. It can begin `latency` after the
    begin of `item`, `gap` after its predecessor in `queue`, `lag` after the work `source` (-1: none). `cause` is why it began
    when it did, `late` how much later that was, ns. `free` is when each queue had done what was enqueued before the recording.
    `telling` says whether the recording shows queues that were made to wait for others.
    """

    def __init__(self, trace: Trace, launched: Launches, host: Host) -> None:
        start = (trace.start[launched.row] - host.origin).astype(float)
        known = launched.call >= 0
        item = _items(trace, launched, host, start)
        self.launch = np.zeros(len(host.row) + 1, bool)
        self.launch[item[known]] = True
        enqueued, item = item, _submitted(trace, launched, host, item, start)
        order = np.lexsort((start, item))
        self.enqueued = enqueued[order]
        self.row, self.item, self.start, known = launched.row[order], item[order], start[order], known[order]
        self.duration = trace.duration[self.row].astype(float)
        self.end = self.start + self.duration
        lanes = numbers_used(trace.lane[self.row])
        number = np.zeros(len(trace.lanes), np.int32)
        number[lanes] = np.arange(len(lanes))
        self.queue = number[trace.lane[self.row]]
        self.lanes = [trace.lanes[lane] for lane in lanes]
        self.queues = len(self.lanes)
        self.device = np.array([lane.device for lane in self.lanes], np.intp)[self.queue]
        self._bounds(trace, host, known)
        told = self._recorded(trace, host)
        self._ordered(trace, launched, order, told)
        self.telling = bool(told) or self.assumed > 0
        self.depth = self._depth(host)

    def _bounds(self, trace: Trace, host: Host, known: Truths) -> None:
        count = len(self.start)
        before = np.full(count, NEVER)  # when the predecessor in the queue was over
        same = np.zeros(count, bool)  # whether it came from the same launch
        for queue in range(self.queues):
            of = np.flatnonzero(self.queue == queue)
            before[of[1:]] = self.end[of[:-1]]
            same[of[1:]] = self.item[of[1:]] == self.item[of[:-1]]
        began = host.began[self.item] if len(host.row) else np.zeros(count)
        call = np.maximum(0.0, host.end[self.item] - began) if len(host.row) else np.zeros(count)
        latency, gap = self.start - began, self.start - before
        follows = before > NEVER
        chained = (same | (~known & follows)) & follows  # a graph's members, and work whose launch was not recorded
        early = ~follows & (began < host.waited)
        idle = self._idle(began) & known & ~same & ~early
        self.usual, longest = usual(np.append(latency[idle], LATENCY))
        bound = follows & (gap < back_to_back(gap[follows & known & ~same & (began + call + self.usual < before)]))
        close = gap[bound & (gap >= 0)]
        self.usual_gap = float(np.median(close)) if len(close) else 0.0
        # What no queue does is not replayed, so a recording with a wrong clock, or work that overlaps, shows in the fidelity.
        latency = np.where(known, np.maximum(latency, -SLACK), latency)
        gap = np.maximum(gap, -SLACK)
        self.latency = np.where(bound, np.minimum(latency, self.usual), latency)
        self.latency[chained] = NEVER
        self.gap = np.where(bound | chained, gap, np.minimum(gap, self.usual_gap))
        self.gap[~follows] = 0.0
        self.source, self.lag = np.full(count, -1, np.intp), np.zeros(count)
        self.assumed = 0
        self.free = np.full(max(1, self.queues), NEVER)
        self.cause = np.where(bound | chained, Cause.QUEUE, Cause.LAUNCH).astype(np.int8)
        launch_ready = np.where(chained | ~known, NEVER, began + call + self.usual)
        self.ready = np.where(known | follows, np.maximum(launch_ready, before + self.usual_gap), self.start)
        ordinary = np.where(chained, ODD, call + np.where(idle, longest, 3 * self.usual + ODD))
        doubtful = ~bound & np.where(chained, gap > ODD, known & (latency > ordinary))
        since = np.where(chained, before, began)
        self._explained(trace, np.flatnonzero(doubtful), since, gap, latency, early)
        self.late = np.where(self.cause == Cause.NOTHING, np.maximum(0.0, self.start - self.ready), 0.0)

    def _idle(self, began: Numbers) -> Truths:
        """Whether the device had nothing to do from the launch of each piece of work to its begin."""
        idle = np.zeros(len(self.start), bool)
        for device in numbers_used(self.device):
            by_start = np.flatnonzero(self.device == device)
            by_start = by_start[np.argsort(self.start[by_start], kind="stable")]
            over = np.concatenate(([NEVER], np.maximum.accumulate(self.end[by_start])))[:-1]
            idle[by_start] = over <= began[by_start]
        return idle

    def _explained(
        self, trace: Trace, late: NDArray[np.intp], since: Numbers, gap: Numbers, latency: Numbers, early: Truths
    ) -> None:
        """Why work began late that neither its launch nor its predecessor held up."""
        if not len(late):
            return
        calls = trace.rows(Kind.CALL)
        ordered = any(STREAM_WAIT.search(trace.names[code]) for code in numbers_used(trace.name[calls]))
        reach = ORDERED if ordered else HAND_OVER
        by_end = np.argsort(self.end, kind="stable")
        ends = self.end[by_end]
        full = self._full(trace, late)
        before = np.searchsorted(ends, self.start[late] + 1, side="right") - 1  # the last to end before each began
        for j, crowded, at in zip(late.tolist(), full.tolist(), before.tolist(), strict=True):
            source = self._source(by_end, ends, j, since[j], at)
            queue = self.queue[j]
            if source >= 0:
                lag = self.start[j] - self.end[source]
                chained = self.latency[j] == NEVER
                if self.queue[source] == queue:
                    self.gap[j] = gap[j]
                else:
                    self.source[j], self.lag[j] = source, lag
                    self.gap[j] = min(gap[j], self.usual_gap) if chained else self.gap[j]
                self.latency[j] = min(self.latency[j], self.usual)
                if lag <= reach:
                    self.cause[j] = Cause.QUEUE if self.queue[source] == queue else Cause.INFERRED
                    continue
            if crowded:
                self.cause[j] = Cause.FULL
            elif early[j]:
                self.cause[j] = Cause.BEFORE
                self.latency[j], self.free[queue] = min(latency[j], self.usual), self.start[j]
            else:
                self.cause[j] = Cause.NOTHING

    @staticmethod
    def _source(by_end: NDArray[np.intp], ends: Numbers, j: int, since: float, at: int) -> int:
        """The work enqueued before `j` whose end `j` seems to have waited for: the last to end before it began, of those up to
        number `at` by their ends."""
        while at >= 0 and ends[at] > since:
            if by_end[at] < j:
                return int(by_end[at])
            at -= 1
        return -1

    def _full(self, trace: Trace, late: NDArray[np.intp]) -> Truths:
        """Whether other work of the same kind had the device while this one waited; a collective's kernels leave room."""
        kinds = np.where(trace.kind[self.row] == Kind.KERNEL, 0, 1)
        polite = np.array([bool(COLLECTIVE.search(name)) for name in trace.names], bool)[trace.name[self.row]]
        found = np.zeros(len(late), bool)
        for device in numbers_used(self.device[late]):
            for kind in (0, 1):
                of = (self.device == device) & (kinds == kind) & ~polite
                mine = (self.device[late] == device) & (kinds[late] == kind)
                worked = union(self.start[of].astype(np.int64), self.end[of].astype(np.int64))
                since, until = self.ready[late[mine]].astype(np.int64), self.start[late[mine]].astype(np.int64)
                found[mine] = covered(worked, since, until) >= MOST * np.maximum(1, until - since)
        return found

    def _recorded(self, trace: Trace, host: Host) -> set[int]:
        """Edges between queues that the driver recorded, in place of those inferred for the same work; rows of their calls."""
        told = stream_waits(trace)
        if not told or not len(host.row):
            return set()
        applied = set()
        launched = host.began[self.item] + host.origin
        of = {queue: self.queue == number for number, queue in enumerate(self.lanes)}
        by_thread: dict[tuple[int, object], Truths] = {(lane.device, lane.thread): mask for lane, mask in of.items()}
        for wait in told:
            mine, others = by_thread.get((wait.device, wait.queue)), by_thread.get((wait.device, wait.awaited))
            applied.add(wait.call)
            if mine is None or others is None:
                continue
            later = np.flatnonzero(mine & (launched >= wait.since))
            before = np.flatnonzero(others & (launched <= wait.recorded))
            if not len(later) or not len(before) or before[-1] >= later[0]:
                continue
            j, k = int(later[0]), int(before[-1])
            lag = self.start[j] - self.end[k]
            if lag >= -CLOCKS and (self.source[j] < 0 or self.end[k] >= self.end[self.source[j]]):
                guessed = self.source[j] >= 0  # then nothing else is known to have held it up
                self.source[j], self.lag[j] = k, lag if guessed else min(lag, PASSING)
                if guessed and lag <= ORDERED:
                    self.cause[j], self.late[j] = Cause.TOLD, 0.0
        return applied

    def _ordered(self, trace: Trace, launched: Launches, order: NDArray[np.intp], told: set[int]) -> None:
        """Edges for calls that made a queue wait, other than those of which it is `told` which queue and for what.

        The next launch of that thread goes to the queue that waits, and what it waits for is what was enqueued last in another
        queue: so torch's streams and NCCL use them. Such an edge held nothing up here, but may when the host is sooner.
        """
        calls = trace.rows(Kind.CALL)
        waits = calls[np.array([bool(WAIT_EVENT.search(n)) for n in trace.names], bool)[trace.name[calls]]]
        waits = waits[~np.isin(waits, list(told))]
        if not len(waits) or self.queues < 2:
            return
        call = launched.call[order]
        known = np.flatnonzero(call >= 0)
        since, lane = trace.start[call[known]], trace.lane[call[known]]
        upto = np.searchsorted(since, trace.start[waits])  # launches before each
        last = np.stack([self._last(np.flatnonzero(self.queue[known] == q), upto) for q in range(self.queues)])
        of = np.array([lane.device for lane in self.lanes])
        for thread in numbers_used(trace.lane[waits]):
            mine, own = np.flatnonzero(trace.lane[waits] == thread), np.flatnonzero(lane == thread)
            following = np.searchsorted(own, upto[mine])
            mine, following = mine[following < len(own)], following[following < len(own)]
            waiting = known[own[following]]
            others = (of[:, None] == self.device[waiting]) & (np.arange(self.queues)[:, None] != self.queue[waiting])
            newest = np.where(others, last[:, mine], -1).max(axis=0)
            for j, latest in zip(waiting.tolist(), newest.tolist(), strict=True):
                if latest < 0 or self.source[j] >= 0:
                    continue
                k = int(known[latest])
                if self.end[k] <= self.start[j]:
                    self.source[j], self.lag[j] = k, min(self.start[j] - self.end[k], PASSING)
                    self.assumed += 1

    @staticmethod
    def _last(of: NDArray[np.intp], upto: NDArray[np.intp]) -> NDArray[np.intp]:
        """The last of some positions before each of others, -1 where there is none."""
        return np.concatenate(([-1], of))[np.searchsorted(of, upto)]

    def _depth(self, host: Host) -> int:
        """How many launches may be enqueued and not begun: what was seen, at least CUDA's own limit."""
        if not len(self.start) or not len(host.row):
            return DEPTH
        reach = np.maximum.accumulate(self.start)
        begun = np.searchsorted(reach, host.began[self.item], side="right")
        return int(max(DEPTH, (np.arange(len(begun)) - begun).max() + 1))


def back_to_back(gaps: Numbers) -> float:
    """How soon after its predecessor a kernel starts that was waiting for it, ns, by the `gaps` of those that surely were:
    launched long before it was over. Twice what is usual."""
    if len(gaps) < FEW:
        return BACK_TO_BACK
    return min(SLOWEST_QUEUE, max(BACK_TO_BACK, 2 * float(np.median(gaps))))


def usual(times: Numbers) -> tuple[float, float]:
    """What something usually takes, the median (of two the lower: a single one may have been any), and the longest it may.

    That is three times as long and 20 us, or what all but every twentieth stay below: on a machine with too much to do, a
    thread that waits for a core takes now and then a hundred times as long. What is usual is no longer than
    SLOWEST, the longest no longer than three times that.
    """
    middle, most = np.quantile(times, (0.5, 0.95), method="lower").clip(0.0).tolist()
    longest = max(3 * middle + ODD, most if len(times) >= FEW else 0.0)
    return min(middle, SLOWEST), min(longest, 3 * SLOWEST)


def _items(trace: Trace, launched: Launches, host: Host, start: Numbers) -> NDArray[np.intp]:
    """The call of the host that enqueued each piece of work.

    Where it was not recorded: the last call before the work began, but not sooner than its predecessor in the queue was
    enqueued, nor later than its successor. What was enqueued before the recording stays in the order in which it began.
    """
    known = launched.call >= 0
    of_row = np.full(len(trace) + 1, -1, np.intp)
    of_row[host.row[host.row >= 0]] = np.flatnonzero(host.row >= 0)
    item = of_row[launched.call]  # the last of `of_row` is that of call -1: none
    by_time = np.searchsorted(host.begin, start, side="right") - 1
    lanes = trace.lane[launched.row]
    old = np.zeros(len(start), bool)  # enqueued before the first of its queue that was recorded
    for lane in np.unique(lanes[~known]):
        of = np.flatnonzero(lanes == lane)
        of = of[np.argsort(start[of], kind="stable")]
        least = np.maximum.accumulate(np.where(known[of], item[of], -1))
        most = np.minimum.accumulate(np.where(known[of], item[of], len(host.row))[::-1])[::-1]
        item[of] = np.where(known[of], item[of], np.maximum(least, np.minimum(by_time[of], most)))
        old[of] = least < 0
    first = np.flatnonzero(old)
    first = first[np.argsort(start[first], kind="stable")]
    item[first] = np.minimum.accumulate(item[first][::-1])[::-1]
    return np.maximum(item, 0)


def _submitted(
    trace: Trace, launched: Launches, host: Host, item: NDArray[np.intp], start: Numbers
) -> NDArray[np.intp]:
    """`item`, where the driver kept commands of OpenCL back: the wait or copy after which an idle queue began with them.

    clEnqueue* need not submit a command: clFlush, clFinish and blocking calls do (OpenCL 3.0, 5.15). NVIDIA's driver keeps
    kernels back until the host waits, or enqueues a copy. At first a queue may still do what was enqueued before the recording:
    there only a wait tells that it was idle.
    """
    opencl = np.array([name.startswith("clEnqueue") for name in trace.names], bool)
    ours = (launched.call >= 0) & opencl[trace.name[launched.call]]
    copies = np.isin(np.arange(len(host.row)), item[ours & (trace.kind[launched.row] == Kind.COPY)])
    waits = np.flatnonzero(host.holds | copies)
    if not ours.any() or not len(waits):
        return item
    found = item.copy()
    lanes = trace.lane[launched.row]
    for lane in np.unique(lanes[ours]):
        of = np.flatnonzero(lanes == lane)
        of = of[np.lexsort((start[of], item[of]))]
        over = np.concatenate(([NEVER], np.maximum.accumulate(start[of] + trace.duration[launched.row[of]])))[:-1]
        at = waits[np.maximum(0, np.searchsorted(host.begin[waits], start[of], side="right") - 1)]
        began, since = host.end[item[of]], start[of] - host.begin[at]
        kept = (
            (at >= item[of] + BATCH) & (over < began) & (since >= 0) & (since < SUBMISSION) & (start[of] > began + ODD)
        ) & ((over > NEVER) | host.holds[at])
        for first in np.flatnonzero(kept).tolist():
            rest = of[first:]
            found[rest[item[rest] <= at[first]]] = at[first]
    return found
