"""What CUPTI has told, as events in torch.profiler's words: calls, kernels, copies, fills, and which queue a wait was for."""

from __future__ import annotations

import ctypes as c
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncscope.model.detail import Detail
from syncscope.model.trace import Kind, Lane
from syncscope.tracers import clocks, record_file
from syncscope.tracers.columns import Builder
from syncscope.tracers.cupti.library import COPY, EVENT, FILL, KERNEL, PEER_COPY, SYNC
from syncscope.tracers.record_columns import RecordRows

FIRST = 32  # added to CUPTI's kinds, as in activities.c
OFFSET = 1 << 40  # added to correlations, so that they do not meet those of OpenCL
NOBODY = 2**32 - 1  # the queue of a wait for none in particular
WAYS = ("", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP")
MEMORIES = ("Unknown", "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static")
WAITS = ("Unknown", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync")
OF_EVENTS = (1, 2)  # of these
LAUNCHING = ("cuLaunch", "cuGraphLaunch", "cuMemcpy", "cuMemset")
DIFFERENT = 0.01  # a clock that runs so much faster or slower has another unit


def add_records(builder: Builder, found: NDArray[Any], origin: int, process: int, lost: int) -> dict[str, Any]:
    """Adds the events of a file's records; what belongs into the trace's meta: devices and the clock, and until when it is
    whole where the first record was `lost` at that moment."""
    records, names = RecordRows(_in_ns(found)), record_file.texts(found)
    ticks = records.of(record_file.CLOCK)
    clock = clocks.Clock(ticks["a"], ticks["a"], 0.0, "none")
    if len(ticks):
        clock = clocks.from_regions(ticks["a"], ticks["a"], ticks["t0"], ticks["t1"])
    events = _Events(builder, clock, origin)
    calls = records.of(record_file.CALL)
    kernels, fills = records.of(FIRST + KERNEL), records.of(FIRST + FILL)
    copies = records.of(FIRST + COPY, FIRST + PEER_COPY)
    events.add(
        Kind.CALL,
        calls,
        start=calls["t0"] - origin,  # by our own clock
        name=events.numbers("name", calls, ["name"], lambda number: names.get(number, "call")),
        lane=events.numbers("lane", calls, ["tid"], lambda thread: builder.thread(process, thread)),
        flags=builder.flags(calls["b"]),
        **builder.lines(calls["b"]),
    )
    events.add(
        Kind.KERNEL,
        kernels,
        name=events.numbers("name", kernels, ["name"], lambda number: demangled(names.get(number, "kernel"))),
        detail=events.numbers("detail", kernels, ["a", "b"], _launch),
    )
    events.add(Kind.COPY, copies, name=events.numbers("name", copies, ["fn", "name"], _copy), bytes=copies["size"])
    events.add(Kind.FILL, fills, name=events.numbers("name", fills, ["name"], _fill), bytes=fills["size"])
    waits = _waits(records)
    events.add(
        Kind.SYNC,
        waits,
        name=events.numbers("name", waits, ["fn"], _kind),
        detail=events.numbers("detail", waits, ["fn", "queue", "a", "b"], _wait),
    )
    # else those of another source are the devices, by the same numbers
    worked = len(kernels) or len(copies) or len(fills)
    meta: dict[str, Any] = {"devices": _devices(records, names)} if worked else {}
    if lost:
        done = max(int(rows["corr"].max(initial=-1)) for rows in (kernels, copies, fills))
        launching = [number for number, name in names.items() if name.startswith(LAUNCHING)]
        open_ = calls[np.isin(calls["name"], launching) & (calls["corr"] > done)]  # what they launched is not there
        meta["until"] = min(lost, int(open_["t0"].min(initial=lost)))
    return meta | ({"clocks": {"CUPTI": clock.facts()}} if len(ticks) else {})


class _Events:
    """Records on their way into a builder, with times from `origin`."""

    def __init__(self, builder: Builder, clock: clocks.Clock, origin: int) -> None:
        self._builder, self._clock, self._origin = builder, clock, origin

    def add(self, kind: Kind, rows: RecordRows, **columns: Any) -> None:
        """Adds them; at CUPTI's times and on the lane of their device's queue, unless others are given."""
        if "start" not in columns:
            columns["start"] = self._clock.to_host(rows["t0"]) - self._origin
        if "lane" not in columns:
            columns["lane"] = self.numbers("lane", rows, ["tid", "queue"], _lane)
        length, correlation = rows["t1"] - rows["t0"], rows["corr"] + OFFSET
        self._builder.add(len(rows), kind=int(kind), duration=length, correlation=correlation, **columns)

    def numbers(self, column: str, rows: RecordRows, words: list[str], make: Callable[..., Any]) -> NDArray[np.int64]:
        """Of each row the number, in the builder's table of this column, of what `make` makes of its fields; made once for
        equal ones."""
        found, at = np.unique(np.stack([rows[word] for word in words]), axis=1, return_inverse=True)
        numbers = self._builder.numbers(column, [make(*values) for values in found.T.tolist()])
        return numbers[at.reshape(-1)]


def _waits(records: RecordRows) -> RecordRows:
    """The records of waits, with the device as `tid`; in `a` the queue that recorded last what they wait for, in `b` the call
    that did, both -1 where it is no event."""
    found = records.of(FIRST + SYNC)
    work = records.of(FIRST + KERNEL, FIRST + COPY, FIRST + FILL)
    device = np.zeros(256, np.int64)  # of each context
    device[work["flags"]] = work["tid"]
    both = np.concatenate([records.of(FIRST + EVENT).records, found.records])
    last: dict[tuple[int, int], tuple[int, int]] = {}
    meant: dict[int, tuple[int, int]] = {}
    for row in both[np.argsort(both["corr"], kind="stable")].tolist():
        of = dict(zip(record_file.RECORD.names or (), row, strict=True))
        event = of["flags"], of["name"]
        if of["type"] == FIRST + EVENT:
            last[event] = of["queue"], of["corr"]
        else:
            meant[of["corr"]] = last.get(event, (-1, -1)) if of["fn"] in OF_EVENTS else (-1, -1)
    waits = found.records
    waits["tid"] = device[found["flags"]]
    waits["a"], waits["b"] = np.array([meant[call] for call in found["corr"].tolist()], np.int64).reshape(-1, 2).T
    return found


def _lane(device: int, queue: int) -> Lane:
    return Lane(device, -1 if queue == NOBODY else queue, device)


def _launch(grid: int, block: int) -> str:
    """Grid and block as activities.c packs them."""
    grid, block = grid & (1 << 64) - 1, block & (1 << 64) - 1
    sizes = (grid >> 32, grid >> 16 & 0xFFFF, grid & 0xFFFF), (block >> 48, block >> 32 & 0xFFFF, block >> 16 & 0xFFFF)
    return Detail(grid=sizes[0], block=sizes[1], registers=block & 0xFFFF).text()


def _memory(number: int) -> str:
    return MEMORIES[number] if number < len(MEMORIES) else MEMORIES[0]


def _copy(way: int, ends: int) -> str:
    how = WAYS[way] if way < len(WAYS) else ""
    return f"Memcpy {how} ({_memory(ends >> 8)} -> {_memory(ends & 0xFF)})"


def _fill(memory: int) -> str:
    return f"Memset ({_memory(memory)})"


def _kind(how: int) -> str:
    return WAITS[how] if how < len(WAITS) else WAITS[0]


def _wait(how: int, queue: int, awaited: int, call: int) -> str:
    own = Detail(sync_kind=_kind(how), stream=-1 if queue == NOBODY else queue)
    return (replace(own, wait_on_stream=awaited, wait_on_record=call + OFFSET) if call >= 0 else own).text()


def _devices(records: RecordRows, names: dict[int, str]) -> list[dict[str, Any]]:
    numbers = records.of(record_file.DEVICE)["name"].tolist()
    return [json.loads(names[number]) for number in numbers if number in names]


def _in_ns(found: NDArray[Any]) -> NDArray[Any]:
    """The records with times that pass as ours do: where torch.profiler has been used before, CUPTI counts cycles."""
    records = RecordRows(found)
    ticks = records.of(record_file.CLOCK)
    if len(ticks) < 2 or ticks["a"][-1] == ticks["a"][0]:
        return found
    passed = float(ticks["a"][-1] - ticks["a"][0])
    least, most = (ticks["t0"][-1] - ticks["t1"][0]) / passed, (ticks["t1"][-1] - ticks["t0"][0]) / passed
    if least - DIFFERENT < 1 < most + DIFFERENT:
        return found
    rate, first = (least + most) / 2, ticks["a"][0]
    moved, theirs, clock = found.copy(), records["type"] > FIRST, records["type"] == record_file.CLOCK
    for word, where in (("t0", theirs), ("t1", theirs), ("a", clock)):
        moved[word][where] = first + np.rint((records[word][where] - first) * rate)
    return moved


@cache
def _demangle() -> Any:
    try:
        demangle = c.CDLL("libstdc++.so.6").__cxa_demangle
    except (OSError, AttributeError):
        return None
    demangle.restype = c.c_void_p
    return demangle


def demangled(name: str) -> str:
    """A kernel's name as it stands in the source, where it is of C++."""
    demangle = _demangle()
    status = c.c_int(1)
    text = demangle(name.encode(), None, None, c.byref(status)) if demangle is not None and name[:2] == "_Z" else None
    if not text:
        return name
    try:
        return c.string_at(text).decode(errors="replace")
    finally:
        c.CDLL(None).free(c.c_void_p(text))
