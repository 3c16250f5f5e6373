"""A `Trace` -> JSON that TensorBoard's profiler tab, Perfetto and this package read.

The dialect is that of torch-tb-profiler 0.4.3: every key before `traceEvents`, integer pids and tids on the host, the
device's number as pid of its events, calls in the category `Runtime`, operators joined with calls by `External id` and
calls with kernels by `correlation`. What Kineto has no field for (lanes, kinds, places, flags, details) is written beside
it, so that reading gives back exactly the trace that was written.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from syncscope import files
from syncscope.kineto import memory
from syncscope.model.trace import DEVICE, Kind, Lane, Trace

CATEGORY: dict[int, str] = {
    Kind.STEP: "user_annotation",
    Kind.OP: "cpu_op",
    Kind.ANNOTATION: "user_annotation",
    Kind.PYTHON: "python_function",
    Kind.CALL: "Runtime",
    Kind.READ: "read",
    Kind.COMPILE: "compile",
    Kind.KERNEL: "kernel",
    Kind.COPY: "gpu_memcpy",
    Kind.FILL: "gpu_memset",
    Kind.SYNC: "cuda_sync",
    Kind.OTHER: "other",
}
VERSION = 2  # of what is ours in it: 1 knew no lines of calls
FIRST_MADE_UP = 1_000_000_000  # numbers for processes and threads that have none
BATCH = 2000  # events in one piece of text


def write(trace: Trace) -> bytes:
    """The trace as one JSON text; `chunks` gives the same piece by piece."""
    return b"".join(chunks(trace))


def save(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write the trace to a file, packed if its name ends in .gz; a reader sees the old file or the whole new one.

    Raises:
        UserError: the file cannot be written.
    """
    with files.whole(path) as file:
        if os.fspath(path).endswith(".gz"):
            # Not gzip.GzipFile: where the disk is full, Python 3.12 and later write their buffer once more when they forget it,
            # and say on standard error that this failed.
            packer = zlib.compressobj(5, wbits=zlib.MAX_WBITS | 16)
            for chunk in chunks(trace):
                file.write(packer.compress(chunk))
            file.write(packer.flush())
        else:
            for chunk in chunks(trace):
                file.write(chunk)


def chunks(trace: Trace) -> Iterator[bytes]:
    """The JSON text of a trace in pieces of some hundred kilobytes."""
    numbers, (lines_of, at) = _numbers(trace.lanes), _lines(trace)
    yield _head(trace, numbers, lines_of)
    lines = _labels(trace.lanes, numbers)
    if len(trace):
        begin, end = int(trace.start.min()), int(trace.end.max())
        lines.append(
            f'{{"ph":"X","cat":"Trace","name":"PyTorch Profiler (0)","pid":"Spans","tid":"PyTorch Profiler",'
            f'"ts":{_us(begin)},"dur":{_us(end - begin)},"args":{{"Op count":0}}}}'
        )
    yield ",\n".join(lines).encode()
    names = [json.dumps(name) for name in trace.names]
    places = [json.dumps(str(place)) for place in trace.places]
    details = [f'"detail":{_detail(text)}' for text in trace.details]
    shapes = {i: split for i, text in enumerate(trace.details) if (split := _shapes(text))}
    targets = _launched(trace)
    written: set[int] = set()
    separator = ",\n" if lines else ""
    for first in range(0, len(trace), BATCH):
        lines = []
        for values in _rows(trace, at, first, first + BATCH):
            kind, name, lane, start, duration, correlation, external, size, place, column, flags, detail, line = values
            pid, tid = numbers[lane]
            args = []
            if external != -1:
                args.append(f'"External id":{external}')
            if correlation != -1:
                args.append(f'"correlation":{correlation}')
            if kind in DEVICE:
                queue = trace.lanes[lane]
                args.append(f'"device":{max(0, queue.device)},"stream":{tid}')
            if size != -1:
                args.append(f'"bytes":{size}')
            if line >= 0:
                args.append(f'"at":{line}')
            if place >= 0 and (kind != Kind.CALL or line < 0):  # of a thousand calls nobody reads it
                args.append(f'"place":{places[place]}')
            if column != -1:
                args.append(f'"column":{column}')
            if flags:
                args.append(f'"flags":{flags}')
            if detail >= 0:
                args.append(shapes.get(detail, details[detail]) if kind == Kind.OP else details[detail])
            if kind == Kind.STEP:
                args.append(f'"as":{kind}')
            lines.append(
                f'{{"ph":"X","cat":"{CATEGORY[kind]}","name":{names[name]},"pid":{pid},"tid":{tid},'
                f'"ts":{_us(start)},"dur":{_us(duration)},"args":{{{",".join(args)}}}}}'
            )
            if kind == Kind.CALL and correlation in targets and correlation not in written:
                written.add(correlation)
                target = targets[correlation]
                lines.append(_arrow("s", "", correlation, (pid, tid), start))
                lines.append(
                    _arrow("f", '"bp":"e",', correlation, numbers[trace.lane[target]], int(trace.start[target]))
                )
        yield (separator + ",\n".join(lines)).encode()
        separator = ",\n"
    if trace.memory is not None:
        told = memory.lines(trace, numbers, places, map(_us, trace.memory.time.tolist()))
        while lines := list(islice(told, BATCH)):
            yield (separator + ",\n".join(lines)).encode()
            separator = ",\n"
    yield b"\n]}\n"


def _lines(trace: Trace) -> tuple[list[list[int]], NDArray[np.int32]]:
    """Each different (place, caller, forward) once, where a place alone does not say it all; which is each event's, or -1."""
    told = (trace.kind == Kind.CALL) & (trace.place >= 0) | (trace.caller >= 0) | (trace.forward >= 0)
    named = [bool(trace.function(place)) for place in range(len(trace.places))]
    told |= np.array([*named, False], bool)[trace.place]
    rows = np.flatnonzero(told)
    at = np.full(len(trace), -1, np.int32)
    columns = np.stack([trace.place[rows], trace.caller[rows], trace.forward[rows]])
    found, at[rows] = np.unique(columns, axis=1, return_inverse=True)
    return found.T.tolist(), at


def _rows(trace: Trace, at: NDArray[np.int32], first: int, last: int) -> Iterator[tuple[int, ...]]:
    columns = (
        trace.kind,
        trace.name,
        trace.lane,
        trace.start,
        trace.duration,
        trace.correlation,
        trace.external,
        trace.bytes,
        trace.place,
        trace.column,
        trace.flags,
        trace.detail,
        at,
    )
    part = [c[first:last].tolist() for c in columns]
    return zip(*part, strict=True)


def _head(trace: Trace, numbers: list[tuple[int, int]], lines: list[list[int]]) -> bytes:
    """Everything but the events; TensorBoard cuts the text at its last bracket, so nothing may follow them."""
    meta = trace.meta
    lanes = [
        [pid, tid, lane.process, lane.thread, lane.device, lane.label]
        for (pid, tid), lane in zip(numbers, trace.lanes, strict=True)
    ]
    head: dict[str, Any] = {"schemaVersion": 1, "displayTimeUnit": "ms"}
    if isinstance(meta.get("origin_ns"), int):
        head["baseTimeNanoseconds"] = meta["origin_ns"]
    if isinstance(meta.get("devices"), list):
        head["deviceProperties"] = meta["devices"]
    job = {key: meta[key] for key in ("backend", "rank", "world_size") if key in meta}
    if "rank" in job:
        head["distributedInfo"] = job
    head["syncscope"] = {"version": VERSION, "lanes": lanes, "meta": meta}
    if lines:
        places = [[place.path, place.line, trace.function(number)] for number, place in enumerate(trace.places)]
        head["syncscope"] |= {"places": places, "lines": lines}
    return json.dumps(head, separators=(",", ":"), allow_nan=False)[:-1].encode() + b',"traceEvents":[\n'


def _numbers(lanes: tuple[Lane, ...]) -> list[tuple[int, int]]:
    """A pair of integers (pid, tid) for each lane, no pair twice."""
    taken: set[tuple[int, int]] = set()
    processes: dict[int | str, int] = {}
    found = []
    for lane in lanes:
        if lane.device >= 0:
            pid = lane.device
        elif isinstance(lane.process, int):
            pid = lane.process
        else:
            pid = processes.setdefault(lane.process, FIRST_MADE_UP + len(processes))
        tid = lane.thread if isinstance(lane.thread, int) else FIRST_MADE_UP
        while (pid, tid) in taken:
            tid = FIRST_MADE_UP if tid < FIRST_MADE_UP else tid + 1
        taken.add((pid, tid))
        found.append((pid, tid))
    return found


def _labels(lanes: tuple[Lane, ...], numbers: list[tuple[int, int]]) -> list[str]:
    lines, seen = [], set()
    for lane, (pid, tid) in zip(lanes, numbers, strict=True):
        on_device = lane.device >= 0
        if pid not in seen:
            seen.add(pid)
            name = f"GPU {lane.device}" if on_device else "python"
            lines.append(_label("process_name", pid, 0, "name", name))
            lines.append(_label("process_labels", pid, 0, "labels", name if on_device else "CPU"))
        label = lane.label or (f"stream {lane.thread}" if on_device else f"thread {lane.thread}")
        lines.append(_label("thread_name", pid, tid, "name", label))
    return lines


def _label(what: str, pid: int, tid: int, key: str, text: str) -> str:
    return f'{{"ph":"M","name":"{what}","ts":0,"pid":{pid},"tid":{tid},"args":{{"{key}":{json.dumps(text)}}}}}'


def _arrow(phase: str, more: str, number: int, where: tuple[int, int], start: int) -> str:
    pid, tid = where
    return (
        f'{{"ph":"{phase}",{more}"cat":"ac2g","name":"ac2g","id":{number},"pid":{pid},"tid":{tid},"ts":{_us(start)}}}'
    )


def _launched(trace: Trace) -> dict[int, int]:
    """The first device event of each correlation."""
    rows = np.flatnonzero(np.isin(trace.kind, DEVICE) & (trace.correlation != -1))[::-1]
    return dict(zip(trace.correlation[rows].tolist(), rows.tolist(), strict=True))


def _us(ns: int) -> str:
    """Nanoseconds as microseconds, to the last digit."""
    whole, rest = divmod(abs(ns), 1000)
    return f"{'-' if ns < 0 else ''}{whole}.{rest:03}" if rest else f"{'-' if ns < 0 else ''}{whole}"


def _detail(text: str) -> str:
    """A JSON object as it is, so that viewers show it; any other text as a JSON string."""
    if text[:1] == "{" and text.isascii() and text[-1:] == "}":
        try:
            json.loads(text, parse_constant=_refuse)
            msgspec.json.decode(text)
        except ValueError:
            pass
        else:
            return text
    return json.dumps(text)


def _shapes(text: str) -> str:
    """Input shapes and types as arguments of their own, where viewers look for them, and the rest of a detail after them.

    "" where reading these would not give back the very same text.
    """
    if '"Input Dims"' not in text or not text.isascii():
        return ""
    try:
        known = msgspec.json.decode(text)
    except ValueError:
        return ""
    if not isinstance(known, dict) or not {"Input Dims", "Input type"} <= known.keys():
        return ""
    seen = {key: known.pop(key) for key in ("Input Dims", "Input type")}
    if not all(isinstance(v, list) for v in seen.values()) or msgspec.json.encode(seen | known).decode() != text:
        return ""
    beside = f',"detail":{msgspec.json.encode(known).decode()}' if known else ""
    return msgspec.json.encode(seen).decode()[1:-1] + beside


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no strict JSON")
