"""What the hook has written, as events: calls of the driver, the device's work that they launched, first uses of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncscope.model.detail import Detail
from syncscope.model.trace import Flag, Kind, Lane
from syncscope.tracers import clocks, record_file
from syncscope.tracers.columns import Builder
from syncscope.tracers.record_columns import RecordRows

PATIENCE = 10_000_000_000  # ns that the end of a recording waits for the device
SLACK = 1_000_000  # ns by which a stamp may lie outside of what is possible before it is nonsense
FIRST_USE = 5_000_000  # ns between submission and start on an idle queue that only a compilation explains

# The device's side of a call, named as torch.profiler names it; other calls launch nothing that is timed.
WORK = {
    "EnqueueNDRangeKernel": (Kind.KERNEL, ""),
    "EnqueueTask": (Kind.KERNEL, ""),
    "EnqueueNativeKernel": (Kind.KERNEL, "native kernel"),
    "EnqueueReadBuffer": (Kind.COPY, "Memcpy DtoH"),
    "EnqueueReadBufferRect": (Kind.COPY, "Memcpy DtoH"),
    "EnqueueReadImage": (Kind.COPY, "Memcpy DtoH"),
    "EnqueueWriteBuffer": (Kind.COPY, "Memcpy HtoD"),
    "EnqueueWriteBufferRect": (Kind.COPY, "Memcpy HtoD"),
    "EnqueueWriteImage": (Kind.COPY, "Memcpy HtoD"),
    "EnqueueCopyBuffer": (Kind.COPY, "Memcpy DtoD"),
    "EnqueueCopyBufferRect": (Kind.COPY, "Memcpy DtoD"),
    "EnqueueCopyImage": (Kind.COPY, "Memcpy DtoD"),
    "EnqueueCopyImageToBuffer": (Kind.COPY, "Memcpy DtoD"),
    "EnqueueCopyBufferToImage": (Kind.COPY, "Memcpy DtoD"),
    "EnqueueMapBuffer": (Kind.COPY, "Memcpy DtoH (map)"),
    "EnqueueMapImage": (Kind.COPY, "Memcpy DtoH (map)"),
    "EnqueueUnmapMemObject": (Kind.COPY, "Memcpy HtoD (unmap)"),
    "EnqueueMigrateMemObjects": (Kind.COPY, "Memcpy (migrate)"),
    "EnqueueSVMMemcpy": (Kind.COPY, "Memcpy SVM"),
    "EnqueueSVMMap": (Kind.COPY, "Memcpy DtoH (map)"),
    "EnqueueSVMUnmap": (Kind.COPY, "Memcpy HtoD (unmap)"),
    "EnqueueSVMMigrateMem": (Kind.COPY, "Memcpy (migrate)"),
    "EnqueueFillBuffer": (Kind.FILL, "Memset (Device)"),
    "EnqueueFillImage": (Kind.FILL, "Memset (Device)"),
    "EnqueueSVMMemFill": (Kind.FILL, "Memset (Device)"),
}
PROCESSOR = 2  # CL_DEVICE_TYPE_CPU
BUILDS = ("BuildProgram", "CompileProgram", "LinkProgram")


def add_records(builder: Builder, found: NDArray[Any], known: list[str], origin: int, process: int) -> dict[str, Any]:
    """Adds the events of a record file's records; what belongs into the trace's meta: devices, clocks, notes.

    `known` names the hooked functions by the number that a record holds.
    """
    records, names = RecordRows(found), record_file.texts(found)
    notes: list[str] = []
    queues, calls, stamps = (records.of(kind) for kind in (record_file.QUEUE, record_file.CALL, record_file.STAMP))
    all_ticks = records.of(record_file.CLOCK)
    _add_calls(builder, calls, known, origin, process)

    device_of = np.zeros(int(queues["queue"].max(initial=0)) + 1, np.int64)
    device_of[queues["queue"]] = queues["name"]
    calls = calls[np.argsort(calls["corr"])]
    stamps = stamps[stamps["queue"] < len(device_of)]
    stamps = stamps[np.isin(stamps["corr"], calls["corr"])]  # a full disk may have kept the one and lost the other
    launch = calls[np.searchsorted(calls["corr"], stamps["corr"])]
    devices = []
    device_clocks = {}
    for row in records.of(record_file.DEVICE).records:
        number = int(row["queue"]) - 1
        devices.append(_device(row, names))
        mine = device_of[stamps["queue"]] == number + 1
        queued, submitted, started = stamps["a"], stamps["b"], stamps["t0"]
        latest = np.where(launch["flags"] & record_file.BLOCKING, stamps["t1"], queued)
        sane = (started > 0) & (stamps["t1"] >= started) & (queued <= submitted) & (submitted <= started)
        ticks = all_ticks[all_ticks["queue"] == number + 1]
        use = mine & sane
        clock = clocks.from_brackets(queued[use], launch["t0"][use], launch["t1"][use], latest[use])
        timer = clocks.from_timer(ticks["a"], ticks["t0"], ticks["t1"]) if len(ticks) else clock
        if _explains(timer, stamps[use], launch[use]) or not _explains(clock, stamps[use], launch[use]):
            clock = timer
        else:
            notes.append(
                f"the timer of device {number} is not the clock of its stamps: the calls say how far it is off"
            )
        device_clocks[str(number)] = clock.facts()
        start = clock.to_host(stamps["t0"])
        end = start + (stamps["t1"] - stamps["t0"])
        slack = SLACK + clock.uncertainty
        use &= (start >= launch["t0"] - slack) & (end - start < np.int64(24 * 3600 * 10**9))
        if dropped := int((mine & ~use).sum()):
            notes.append(f"{dropped} device times of device {number} were dropped: the driver's stamps make no sense")
        _add_work(builder, stamps[use], launch[use], start[use] - origin, end[use] - origin, number, known, names)
        _add_first_uses(builder, stamps[use], launch[use], clock, start[use], origin, number, names)
    notes += [
        f"queue {number} was made before the recording and without profiling: host times only"
        for number in queues["queue"][(queues["flags"] & record_file.PROFILED) == 0].tolist()
    ]
    programs = dict.fromkeys(record_file.texts(found, record_file.SOURCE).values())
    facts = {"devices": devices, "clocks": device_clocks, "notes": notes, "programs": list(programs)}
    return facts | {"until": _until(records, calls, stamps, queues, known)}


def _until(
    records: RecordRows, calls: RecordRows, stamps: RecordRows, queues: RecordRows, known: list[str]
) -> int | None:
    """The moment until which everything is there, ns of CLOCK_MONOTONIC, where there was no room for what came after; stamps
    come in the order of the calls."""
    lost = int(records["t1"][records["type"] == record_file.FRONT].max(initial=0))
    if not lost:
        return None
    timed = np.isin(calls["queue"], queues["queue"][(queues["flags"] & record_file.PROFILED) > 0])
    timed &= np.array([name in WORK for name in known], bool)[calls["fn"]]
    timed &= (calls["flags"] & record_file.FAILED) == 0
    open_ = calls[timed & (calls["corr"] > int(stamps["corr"].max(initial=-1)))]
    return min(lost, int(open_["t0"].min(initial=lost)))


def _device(row: Any, names: dict[int, str]) -> dict[str, Any]:
    """What is known of a device, in Kineto's words."""
    known = {"name": names.get(int(row["name"]), "").strip(), "totalGlobalMem": int(row["size"])}
    return known | ({"numSms": int(row["t0"]), "processor": bool(row["t1"] & PROCESSOR)} if row["t0"] else {})


def _explains(clock: clocks.Clock, stamps: RecordRows, launch: RecordRows) -> bool:
    """Whether commands began after they were enqueued, and before the recording's end had been waited for, most of them."""
    start = clock.to_host(stamps["t0"])
    slack = SLACK + clock.uncertainty
    possible = (start >= launch["t0"] - slack) & (start <= launch["t1"].max(initial=0) + slack + PATIENCE)
    return 2 * int(possible.sum()) >= len(stamps)


def _add_calls(builder: Builder, calls: RecordRows, known: list[str], origin: int, process: int) -> None:
    kinds = np.array([int(Kind.COMPILE if name in BUILDS else Kind.CALL) for name in known], np.int64)
    name = builder.numbers("name", [f"cl{name}" for name in known])
    threads, at = np.unique(calls["tid"], return_inverse=True)
    lanes = builder.numbers("lane", [builder.thread(process, int(t)) for t in threads])
    builder.add(
        len(calls),
        kind=kinds[calls["fn"]],
        name=name[calls["fn"]],
        lane=lanes[at],
        start=calls["t0"] - origin,
        duration=calls["t1"] - calls["t0"],
        correlation=calls["corr"],
        bytes=np.where((calls["name"] > 0) | (calls["size"] == 0), -1, calls["size"]),
        flags=builder.flags(calls["b"], np.where(calls["flags"] & record_file.BLOCKING, Flag.BLOCKING, Flag.NONE)),
        **builder.lines(calls["b"]),
    )


def _add_work(
    builder: Builder,
    stamps: RecordRows,
    launch: RecordRows,
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    device: int,
    known: list[str],
    names: dict[int, str],
) -> None:
    work = [WORK.get(name, (Kind.OTHER, name)) for name in known]
    kernel = np.full(max(names, default=0) + 1, -1)
    for number, text in names.items():
        kernel[number] = builder.tables["names"][text]
    named = record_file.known(launch["name"], len(kernel))
    own = builder.numbers("name", [text or "kernel" for _, text in work])
    queues, at = np.unique(stamps["queue"], return_inverse=True)
    lanes = builder.numbers("lane", [Lane(device, int(queue), device) for queue in queues])
    kind = np.array([int(k) for k, _ in work])[launch["fn"]]
    builder.add(
        len(stamps),
        kind=kind,
        name=np.where(kernel[named] >= 0, kernel[named], own[launch["fn"]]),
        lane=lanes[at],
        start=start,
        duration=end - start,
        correlation=stamps["corr"],
        bytes=np.where(kind == Kind.KERNEL, -1, launch["size"]),
        detail=_shapes(builder, launch),
    )


def _shapes(builder: Builder, launch: RecordRows) -> NDArray[np.int64]:
    """Details of the launches of kernels whose groups the program gave: how many, and how many work items in each."""
    pairs, at = np.unique(np.stack([launch["size"], launch["a"]], axis=1), axis=0, return_inverse=True)
    known = [
        Detail(grid=(size // group, 1, 1), block=(group, 1, 1)).text() if group else None
        for size, group in pairs.tolist()
    ]
    return np.where(launch["name"] > 0, builder.numbers("detail", known)[at.ravel()], -1)


def _add_first_uses(
    builder: Builder,
    stamps: RecordRows,
    launch: RecordRows,
    clock: clocks.Clock,
    start: NDArray[np.int64],
    origin: int,
    device: int,
    names: dict[int, str],
) -> None:
    """PoCL compiles a kernel for its work-group size when it first runs, inside the queue: seen as a late start."""
    submit, end = clock.to_host(stamps["b"]), clock.to_host(stamps["t1"])
    numbers, at = np.unique(launch["name"], return_inverse=True)
    called = builder.numbers("name", [names.get(number, "a kernel") for number in numbers.tolist()])[at]
    for queue in np.unique(stamps["queue"]):
        rows = np.flatnonzero(stamps["queue"] == queue)
        rows = rows[np.argsort(start[rows], kind="stable")]
        free = np.maximum.accumulate(np.concatenate([[0], end[rows][:-1]]))
        begin = np.maximum(free, submit[rows])
        first = np.zeros(len(rows), bool)  # of a handle in this recording: later ones start late for other reasons
        first[np.unique(launch["name"][rows], return_index=True)[1]] = True
        late = np.flatnonzero(first & (start[rows] - begin > FIRST_USE) & (launch["name"][rows] > 0))
        of = np.stack([called, launch["size"], launch["a"]])[:, rows]
        late = np.array([i for i in late.tolist() if not (of[:, :i] == of[:, i : i + 1]).all(axis=0).any()], np.int64)
        if not len(late):  # and what runs once more by another handle is compiled already
            continue
        text = [f"first use of {names.get(int(launch['name'][rows[i]]), 'a kernel')}" for i in late]
        builder.add(
            len(late),
            kind=int(Kind.COMPILE),
            name=builder.numbers("name", text),
            lane=builder.numbers("lane", [Lane(device, int(queue), device)])[0],
            start=begin[late] - origin,
            duration=start[rows][late] - begin[late],
        )
