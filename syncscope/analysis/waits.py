"""Which driver calls make the host wait, and for the end of which device work.

CUDA, HIP, SYCL and OpenCL name their calls differently and say seldom what a call waited for, so a call is known by its
name and its target is found by time: in an in-order queue it is the work that was enqueued last before the call, and among
several queues the one whose work ended last before the call returned. CUPTI's own record of the queue (`Kind.SYNC`) is
used where there is one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from syncscope.model.detail import Detail
from syncscope.model.trace import DEVICE, Flag, Kind, Lane, Trace

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
SLACK = 2000  # ns by which the clocks of host and device may disagree about what came first


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
    closing: bool = False  # the recorder's own: for everything, before the first launch or after all else


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


@dataclass(frozen=True, slots=True)
class StreamWait:
    """A queue was told to wait for what another had been given by the time an event was recorded; times are ns."""

    device: int
    queue: object  # number or name, as the lanes have it
    since: int  # when it was told
    awaited: object
    recorded: int


def stream_waits(trace: Trace) -> list[StreamWait]:
    """The waits of queues for each other that the driver recorded (CUPTI's cuda_sync events)."""
    found = []
    records = _records(trace)
    calls = _starts(trace, {r.detail.wait_on_record for r in records.values()} | set(records))
    for correlation, record in records.items():
        told = record.detail
        recorded = calls.get(told.wait_on_record)
        if told.sync_kind.startswith("Stream Wait") and recorded is not None and correlation in calls:
            found.append(
                StreamWait(record.lane.device, record.queue, calls[correlation], told.wait_on_stream, recorded)
            )
    return found


def _starts(trace: Trace, correlations: set[int | None]) -> dict[object, int]:
    """When the calls of these correlations began."""
    wanted = [number for number in correlations if number is not None]
    if not wanted:
        return {}
    rows = trace.rows(Kind.CALL)
    rows = rows[np.isin(trace.correlation[rows], wanted)]
    return dict(zip(trace.correlation[rows].tolist(), trace.start[rows].tolist(), strict=True))


def waits(trace: Trace, launched: Launches) -> list[Wait]:
    """The calls that wait, in order of their start; `launched` is what `launches` gave."""
    calls = trace.rows(Kind.CALL)
    if not len(calls):
        return []
    kinds = {int(code): _kind(trace.names[code]) for code in np.unique(trace.name[calls])}
    waiting = np.array([code for code, kind in kinds.items() if kind], np.int32)
    flagged = (trace.flags[calls] & Flag.BLOCKING) != 0
    candidates = calls[np.isin(trace.name[calls], waiting) | flagged]
    if not len(candidates):
        return []
    used = trace.rows(Kind.READ, Kind.OP)
    last_use = int((trace.start[used] + trace.duration[used]).max(initial=-1))
    threads = _working_threads(trace, launched)
    queues = _Queues(trace, launched)
    own = {c: i for i, c in enumerate(launched.call.tolist()) if c >= 0}
    records = _records(trace)
    recorded = _starts(trace, {r.detail.wait_on_record for r in records.values()})
    last_launch = int(trace.start[launched.call[launched.call >= 0]].max(initial=-1))
    first_launch = int(trace.start[launched.call[launched.call >= 0]].min(initial=2**62))
    found = []
    for row in candidates.tolist():
        how = kinds[int(trace.name[row])]
        blocking = bool(trace.flags[row] & Flag.BLOCKING)
        if int(trace.lane[row]) not in threads:
            continue
        if how == "everything" and int(trace.start[row]) < first_launch:
            found.append(Wait(row, closing=True))
            continue
        finish = trace.names[trace.name[row]].startswith("clFinish")
        if int(trace.start[row]) > max(last_launch, last_use) and (how == "everything" or finish):
            found.append(Wait(row, tuple(queues.whole_device(row)), closing=True))
            continue
        if how in ("copy", "async copy") or (blocking and row in own):
            wait = _copy(trace, row, how, blocking, own, launched, queues)
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


def _copy(
    trace: Trace, row: int, how: str, blocking: bool, own: dict[int, int], launched: Launches, queues: _Queues
) -> Wait | None:
    """A copy waits for its own work, if it returned after it and its host side is not pinned."""
    index = own.get(row)
    if index is None:
        waited = how == "copy" or blocking
        return Wait(row, tuple(queues.nearest(row)), guessed=queues.several) if waited else None
    work = int(launched.row[index])
    name = trace.names[trace.name[work]]
    ended = int(trace.start[work] + trace.duration[work])
    returned = int(trace.start[row] + trace.duration[row])
    if blocking:
        return Wait(row, (work,))
    if ended > returned + SLACK or PINNED.search(name) or (how == "async copy" and not NOT_PINNED.search(name)):
        return None
    return Wait(row, (work,))


def _queue(row: int, record: _Record | None, recorded: dict[object, int], queues: _Queues) -> Wait:
    """A wait for a queue or an event: for what the driver's record names, else for the work whose end is nearest."""
    if record is not None:
        told = record.detail
        stream = record.queue if told.wait_on_stream is None else told.wait_on_stream
        named = queues.before(row, stream, recorded.get(told.wait_on_record), record.lane.device)
        if named:
            return Wait(row, tuple(named[:1]))
    return Wait(row, tuple(queues.nearest(row)), guessed=queues.several)


def _working_threads(trace: Trace, launched: Launches) -> set[int]:
    """Lanes that enqueue work or run operators: a thread that only polls (a watchdog) holds nobody up."""
    lanes = set(np.unique(trace.lane[launched.call[launched.call >= 0]]).tolist())
    lanes |= set(np.unique(trace.lane[trace.rows(Kind.OP, Kind.READ, Kind.STEP)]).tolist())
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


def _records(trace: Trace) -> dict[int, _Record]:
    """CUPTI's records of waits by the correlation of their call."""
    rows = trace.rows(Kind.SYNC).tolist()
    return {int(trace.correlation[row]): _Record(trace.lanes[trace.lane[row]], trace.known(row)) for row in rows}


class _Queues:
    """The work of each queue in the order in which it was enqueued."""

    def __init__(self, trace: Trace, launched: Launches) -> None:
        self._trace = trace
        self._end = trace.start + trace.duration
        self._queues: list[tuple[Lane, list[int], list[int]]] = []
        since = np.where(launched.call >= 0, trace.start[launched.call], trace.start[launched.row])
        lanes = trace.lane[launched.row]
        for lane in np.unique(lanes).tolist():
            of = np.flatnonzero(lanes == lane)
            of = of[np.lexsort((trace.start[launched.row[of]], since[of]))]
            self._queues.append((trace.lanes[lane], since[of].tolist(), launched.row[of].tolist()))

    @property
    def several(self) -> bool:
        """Whether there is more than one queue that a wait may be for."""
        return len(self._queues) > 1

    def before(self, row: int, stream: object = None, until: int | None = None, device: int = -1) -> list[int]:
        """The last work of every queue (or of one) that was enqueued before a call (or a moment), the last to end first."""
        start = int(self._trace.start[row]) if until is None else until
        last = []
        for lane, since, rows in self._queues:
            if (stream is not None and stream != -1 and lane.thread != stream) or device not in (-1, lane.device):
                continue
            at = bisect_right(since, start)
            if at:
                last.append(rows[at - 1])
        return sorted(last, key=lambda r: -int(self._end[r]))

    def whole_device(self, row: int) -> list[int]:
        """The last work of every queue of the device that a call waited for: of the ones that had done all when it returned."""
        returned = int(self._trace.start[row] + self._trace.duration[row]) + SLACK
        last = self.before(row)
        device = {r: self._trace.lanes[self._trace.lane[r]].device for r in last}
        busy = {device[r] for r in last if int(self._end[r]) > returned}
        return [r for r in last if device[r] not in busy] or last

    def nearest(self, row: int) -> list[int]:
        """The one among them that ended last before the call returned."""
        returned = int(self._trace.start[row] + self._trace.duration[row]) + SLACK
        return [r for r in self.before(row) if int(self._end[r]) <= returned][:1]
