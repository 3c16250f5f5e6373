"""Which driver calls make the host wait, and for the end of which device work.

CUDA, HIP, SYCL and OpenCL name their calls differently and say seldom what a call waited for, so a call is known by its
name and its target is found by time: in an in-order queue it is the work that was enqueued last before the call, and among
several queues the one whose work ended last before the call returned. CUPTI's own record of the queue (`Kind.SYNC`) is
used where there is one.

What waits by its name (`cudaMemcpy`, `hipMemcpyWithStream`) or by what is documented (a copy to pageable memory) waits, also
where its work is recorded to end a little after it returned: two clocks are seldom the same to a microsecond. How far the
device's is ahead is learned from such waits, and allowed for where a target is guessed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from syncscope.model.detail import Detail
from syncscope.model.trace import DEVICE, Flag, Kind, Lane, Trace, numbers_used

# Of the device or of one queue: all that was enqueued before.
EVERYTHING = re.compile(r"DeviceSynchronize|CtxSynchronize|ContextSynchronize")
QUEUE = re.compile(
    r"(?:Stream|Event)Synchronize|^clFinish|^clWaitForEvents|[Qq]ueueFinish|EventWait$|EventsWait$|[Qq]ueue.*Synchronize"
    r"|HostSynchronize|FenceHostSynchronize"
)
# A copy that returns when its own work is done: `cudaMemcpy`, `hipMemcpyWithStream`, `cuMemcpyDtoH_v2`.
COPY = re.compile(r"Memcpy(?!.*(?:Async|Peer))|MemcpyWithStream")
ASYNC_COPY = re.compile(r"Memcpy.*Async|MemBuffer(?:Read|Write)|USMMemcpy")
NOT_PINNED = re.compile(r"Pageable|-> Host|Host ->|DtoH|HtoD|D2H|H2D|M2D|D2M")
PINNED = re.compile(r"Pinned")
ALLOCATOR = re.compile(r"Malloc|Free|HostAlloc|HostRegister|MemAlloc|MemPool")
TO_PAGEABLE = re.compile(r"-> Pageable")
TO_HOST = re.compile(r"DtoH|D2H|D2M|Device -> (?:Host|Pageable|Pinned)")
FROM_PAGEABLE = re.compile(r"Pageable -> ")
FROM_HOST = re.compile(r"HtoD|H2D|M2D|(?:Host|Pageable|Pinned) -> Device|[Ww]riteBuffer")
WITHIN = re.compile(r"DtoD|D2D|Device -> Device")
SLACK = 2000  # ns by which the clocks of host and device may disagree about what came first
STAGED = 20_000  # ns: a call that copies through the driver's own buffer takes longer
CLOCKS = 20_000  # ns by which they disagree at worst, where it is known that one waited for the other
NO_STREAM = (None, -1, 2**32 - 1)  # as CUPTI writes a queue that it does not know


@dataclass(frozen=True, slots=True)
class Wait:
    """A call (a row of the trace) that returned only after device work.

    `targets` are the rows of the device work it waited for, one per queue, the last to end first; none if every queue was
    empty. `guessed` says that they were found by time, among several queues, and not by a correlation or a record of the
    driver.
    """

    row: int
    targets: tuple[int, ...] = ()
    guessed: bool = False
    staged: bool = False  # for the driver, not for the device: it had copied all into its own buffer when it returned
    closing: bool = False  # the recorder's own: for everything, before there is anything to wait for or after all else


@dataclass(frozen=True, slots=True)
class Launches:
    """Device work and the calls that enqueued it. Rows of the trace; `call` is -1 where the launch was not recorded."""

    row: np.ndarray[tuple[int], np.dtype[np.intp]]
    call: np.ndarray[tuple[int], np.dtype[np.intp]]


def launches(trace: Trace) -> Launches:
    """Every kernel, copy and fill with the call that enqueued it; several may share one call (graphs)."""
    rows = trace.rows(*DEVICE)
    rows = rows[np.array([lane.device >= 0 for lane in trace.lanes], bool)[trace.lane[rows]]] if len(rows) else rows
    calls = trace.rows(Kind.CALL)
    known = calls[trace.correlation[calls] >= 0]
    call = np.full(len(rows), -1, np.intp)
    if len(known) and len(rows):
        known = known[np.argsort(trace.correlation[known], kind="stable")]
        numbers = trace.correlation[known]
        wanted = trace.correlation[rows]
        at = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
        found = (numbers[at] == wanted) & (wanted >= 0)
        call[found] = known[at[found]]
    return Launches(rows, call)


def enqueued_before(trace: Trace, launched: Launches) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which work was enqueued before the recording: in its queue all whose launch was recorded comes later, and the host
    launched already while it ran, or waited until all of it was over.

    Where the host launched later and did not wait, the device was not behind it, and launches may have been lost. Of a queue of
    which no launch was recorded nobody can tell.
    """
    known = launched.call >= 0
    if known.all() or not known.any():
        return np.zeros(len(known), bool)
    lane, start = trace.lane[launched.row], trace.start[launched.row]
    never = np.iinfo(np.int64).max
    first = np.full(len(trace.lanes), never)
    np.minimum.at(first, lane[known], start[known])
    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = ~known & (start < first[lane]) & (first[lane] < never)
    over, launch = trace.end[launched.row[found]].max(initial=0), trace.start[launched.call[known]].min()
    calls = trace.rows(Kind.CALL)
    drains = np.array([bool(EVERYTHING.search(name)) for name in trace.names], bool)[trace.name[calls]]
    waited = (trace.start[calls] < over) & (trace.end[calls] >= over - SLACK) & (trace.start[calls] < launch) & drains
    return found & bool(launch < over or waited.any())


@dataclass(frozen=True, slots=True)
class StreamWait:
    """A queue was told to wait for what another had been given by the time an event was recorded; times are ns."""

    device: int
    queue: object  # number or name, as the lanes have it
    since: int  # when it was told
    awaited: object
    recorded: int  # when that event was recorded; where nobody knows, when the queue was told to wait for it
    call: int  # the row of the call that told it


def stream_waits(trace: Trace) -> list[StreamWait]:
    """The waits of queues for each other that the driver recorded (CUPTI's cuda_sync events)."""
    records = {
        number: record
        for number, record in _records(trace).items()
        if record.detail.sync_kind.startswith("Stream Wait") and record.detail.wait_on_stream not in NO_STREAM
    }
    calls = _calls(trace, {record.detail.wait_on_record for record in records.values()} | set(records))
    found = []
    for number, record in records.items():
        if number in calls:
            told, detail = calls[number], record.detail
            recorded = calls.get(detail.wait_on_record, told)
            since, until = int(trace.start[told]), int(trace.start[recorded])
            found.append(StreamWait(record.device, record.queue, since, detail.wait_on_stream, until, told))
    return found


def _calls(trace: Trace, correlations: set[int | None]) -> dict[int | None, int]:
    """The rows of the calls of these correlations."""
    known = [number for number in correlations if number is not None and number >= 0]
    if not known:
        return {}
    rows = trace.rows(Kind.CALL)
    rows = rows[np.isin(trace.correlation[rows], known)]
    return dict(zip(trace.correlation[rows].tolist(), rows.tolist(), strict=True))


def waits(trace: Trace, launched: Launches) -> list[Wait]:
    """The calls that wait, in order of their start; `launched` is what `launches` gave."""
    calls = trace.rows(Kind.CALL)
    if not len(calls):
        return []
    kinds = {int(code): _kind(trace.names[code]) for code in numbers_used(trace.name[calls])}
    waiting = np.zeros(len(trace.names), bool)
    waiting[[code for code, kind in kinds.items() if kind]] = True
    flagged = (trace.flags[calls] & Flag.BLOCKING) != 0
    candidates = calls[waiting[trace.name[calls]] | flagged]
    if not len(candidates):
        return []
    used = trace.rows(Kind.READ, Kind.OP)
    last_use = int((trace.start[used] + trace.duration[used]).max(initial=-1))
    threads = working_threads(trace, launched)
    queues = _Queues(trace, launched)
    own_work = np.full(len(trace) + 1, -1, np.int32)  # of each call; -1 is the last, and nobody
    own_work[launched.call] = launched.row
    work = own_work[candidates]
    never = np.array([not NOT_PINNED.search(name) for name in trace.names], bool)[trace.name[work]]
    copying = np.array([kinds.get(code) == "async copy" for code in range(len(trace.names))], bool)
    never &= copying[trace.name[candidates]] & (work >= 0) & ((trace.flags[candidates] & Flag.BLOCKING) == 0)
    candidates, work = candidates[~never], work[~never]
    own = dict(zip(candidates[work >= 0].tolist(), work[work >= 0].tolist(), strict=True))
    records = _records(trace)
    events = _calls(trace, {record.detail.wait_on_record for record in records.values()})
    recorded = {number: int(trace.start[row]) for number, row in events.items()}
    queues.allow({row: kinds[int(trace.name[row])] for row in candidates.tolist()}, own)
    last_launch = int(trace.start[launched.call[launched.call >= 0]].max(initial=-1))
    first_launch = int(trace.start[launched.call[launched.call >= 0]].min(initial=2**62))
    first_use = int(trace.start[trace.rows(Kind.READ, Kind.OP, Kind.STEP)].min(initial=2**62))
    found = []
    for row in candidates.tolist():
        how = kinds[int(trace.name[row])]
        blocking = bool(trace.flags[row] & Flag.BLOCKING)
        if int(trace.lane[row]) not in threads:
            continue
        if how == "everything" and int(trace.start[row]) < first_launch:
            drained = tuple(queues.whole_device(row)) if int(trace.start[row]) > first_use else ()
            found.append(Wait(row, drained, closing=not drained))
            continue
        finish = trace.names[trace.name[row]].startswith("clFinish")
        if int(trace.start[row]) > max(last_launch, last_use) and (how == "everything" or finish):
            found.append(Wait(row, tuple(queues.whole_device(row)), closing=True))
            continue
        if how in ("copy", "async copy") or (blocking and row in own):
            wait = _copy(trace, row, how, blocking, own, queues)
        elif how == "everything":
            wait = Wait(row, tuple(queues.whole_device(row)))
        else:
            wait = _queue(row, records.get(int(trace.correlation[row])), recorded, queues)
        if wait is not None:
            found.append(wait)
    return found


def _kind(name: str) -> str:
    if ALLOCATOR.search(name):
        return ""
    if EVERYTHING.search(name):
        return "everything"
    if QUEUE.search(name):
        return "queue"
    if COPY.search(name):
        return "copy"
    return "async copy" if ASYNC_COPY.search(name) else ""


def _copy(trace: Trace, row: int, how: str, blocking: bool, own: dict[int, int], queues: _Queues) -> Wait | None:
    """A copy waits for its own work: by its name, or if its host side is not pinned and it returned after that work."""
    work = own.get(row)
    if work is None:
        waited = how == "copy" or blocking
        return Wait(row, tuple(queues.nearest(row)), guessed=queues.several) if waited else None
    name = trace.names[trace.name[work]]
    returned = int(trace.start[row] + trace.duration[row])
    late = int(trace.start[work] + trace.duration[work]) - returned
    if how == "copy" and not TO_HOST.search(name):  # within the device, or staged: the call may only have enqueued it
        waited = late <= SLACK if WITHIN.search(name) else int(trace.start[work]) <= returned + CLOCKS
    elif how == "async copy" and not blocking:
        if FROM_PAGEABLE.search(name) and late > queues.slack and int(trace.duration[row]) > STAGED:
            return Wait(row, staged=True)
        ours = NOT_PINNED.search(name) and not PINNED.search(name)
        waited = bool(ours) and late <= (CLOCKS if TO_PAGEABLE.search(name) else queues.slack)
    else:
        waited = True
    return Wait(row, (work,)) if waited or blocking else None


def _queue(row: int, record: _Record | None, recorded: dict[int | None, int], queues: _Queues) -> Wait:
    """A wait for a queue or an event: for what the driver's record names, else for the work whose end is nearest."""
    if record is not None:
        told = record.detail
        stream = record.queue if told.wait_on_stream is None else told.wait_on_stream
        named = queues.before(row, stream, recorded.get(told.wait_on_record), record.device)
        if named and stream not in NO_STREAM:
            return Wait(row, tuple(named[:1]))
    return Wait(row, tuple(queues.nearest(row)), guessed=queues.several)


def working_threads(trace: Trace, launched: Launches) -> set[int]:
    """Lanes that enqueue work or run operators: a thread that only polls (a watchdog) holds nobody up."""
    lanes = set(numbers_used(trace.lane[launched.call[launched.call >= 0]]))
    lanes |= set(numbers_used(trace.lane[trace.rows(Kind.OP, Kind.READ, Kind.STEP)]))
    return lanes


@dataclass(frozen=True, slots=True)
class _Record:
    """CUPTI's record of a wait, on the lane of the queue that it was for."""

    lane: Lane
    detail: Detail

    @property
    def queue(self) -> object:
        """The queue's number or name."""
        return self.lane.thread if self.detail.stream is None else self.detail.stream

    @property
    def device(self) -> int:
        """The device's number: a file of Kineto's has it where others have the process; -1 is not known."""
        if self.lane.device >= 0:
            return self.lane.device
        return self.lane.process if isinstance(self.lane.process, int) else -1


def _records(trace: Trace) -> dict[int, _Record]:
    """CUPTI's records of waits by the correlation of their call."""
    rows = trace.rows(Kind.SYNC).tolist()
    return {int(trace.correlation[row]): _Record(trace.lanes[trace.lane[row]], trace.known(row)) for row in rows}


class _Queues:
    """The work of each queue in the order in which it was enqueued."""

    def __init__(self, trace: Trace, launched: Launches) -> None:
        self._trace = trace
        self.slack = SLACK
        self._end = trace.start + trace.duration
        self._queues: list[tuple[Lane, list[int], list[int], list[int]]] = []
        since = np.where(launched.call >= 0, trace.start[launched.call], trace.start[launched.row])
        earlier = enqueued_before(trace, launched)
        since[earlier] = -1  # before all that was recorded
        lanes = trace.lane[launched.row]
        for lane in numbers_used(lanes):
            of = np.flatnonzero(lanes == lane)
            of = of[np.lexsort((trace.start[launched.row[of]], since[of]))]
            rows = launched.row[of]
            ends = np.maximum.accumulate(self._end[rows[: int(earlier[of].sum())]])
            self._queues.append((trace.lanes[lane], since[of].tolist(), rows.tolist(), ends.tolist()))

    @property
    def several(self) -> bool:
        """Whether there is more than one queue that a wait may be for."""
        return len(self._queues) > 1

    def allow(self, calls: dict[int, str], own: dict[int, int]) -> None:
        """Learn from calls that surely waited (by row, and how) how far the device's clock is ahead of the host's."""
        ahead = 0
        for row, how in calls.items():
            work = own.get(row)
            name = self._trace.names[self._trace.name[work]] if work is not None else ""
            if how == "everything" and len({lane.device for lane, *_ in self._queues}) == 1:
                work = next(iter(self.before(row)), None)
            elif not (TO_HOST.search(name) if how == "copy" else TO_PAGEABLE.search(name)):
                continue
            late = 0 if work is None else int(self._end[work] - self._end[row])
            ahead = max(ahead, late) if late <= CLOCKS else ahead
        self.slack = SLACK + ahead

    def before(self, row: int, stream: object = None, until: int | None = None, device: int = -1) -> list[int]:
        """The last work of every queue (or of one) that was enqueued before a call (or a moment), the last to end first."""
        start = int(self._trace.start[row]) if until is None else until
        returned, last = int(self._end[row]) + self.slack, []
        for lane, since, rows, earlier in self._queues:
            if (stream is not None and stream != -1 and lane.thread != stream) or device not in (-1, lane.device):
                continue
            at = bisect_right(since, start)
            if at <= len(earlier) and until is None:  # an event may have been recorded behind any of them
                at = bisect_right(earlier, returned)
            if at:
                last.append(rows[at - 1])
        return sorted(last, key=lambda r: -int(self._end[r]))

    def whole_device(self, row: int) -> list[int]:
        """The last work of every queue of the device that a call waited for: of the ones that had done all when it returned."""
        returned = int(self._end[row]) + self.slack
        last = self.before(row)
        device = {r: self._trace.lanes[self._trace.lane[r]].device for r in last}
        busy = {device[r] for r in last if int(self._end[r]) > returned}
        return [r for r in last if device[r] not in busy] or last

    def nearest(self, row: int) -> list[int]:
        """The one among them that ended last before the call returned; of a single queue it is known.

        A call that would have waited for nothing, and took its time, waited for what ended a little later by another clock.
        """
        began, returned, last = int(self._trace.start[row]), int(self._end[row]), self.before(row)
        found = [r for r in last if int(self._end[r]) <= returned + self.slack][:1]
        if (returned > began + CLOCKS / 2 and not (found and int(self._end[found[0]]) > began)) or not self.several:
            found = [r for r in last if int(self._end[r]) <= returned + CLOCKS][-1:] or found
        return found
