"""A trace as the XSpace message that XProf's "Profile" tab reads (`*.xplane.pb`).

Field numbers are those of tsl/profiler/protobuf/xplane.proto:

    XSpace  1 planes, 4 hostnames        XPlane  1 id, 2 name, 3 lines, 4 event names, 5 stat names, 6 stats
    XLine   1 id, 2 name, 4 events       XEvent  1 name, 2 offset_ps, 3 duration_ps, 4 stats
    XStat   1 name, then one of 4 int64, 5 string, 7 a string by its number among the stat names

Lines and stats bear the names that XProf looks for. There is no `group_id`: with it XProf would take the steps for grouped
already, and find none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from syncscope.exporters import _figures as figures
from syncscope.exporters._protobuf import messages, number, numbers, text, varint, written
from syncscope.model.detail import Detail
from syncscope.model.trace import DEVICE, WAITS, Kind, Lane, Table, Trace

AT_ONCE = 1 << 16  # events encoded together: bounds memory, about 200 bytes each


@dataclass(frozen=True, slots=True)
class Stat:
    """A further fact of some events: a column of integers, or of numbers of texts (`refer`); nothing where it is below 0."""

    name: str
    values: NDArray[np.int64]
    is_text: bool = False

    def of(self, rows: slice) -> Stat:
        """The same fact of these events only."""
        return Stat(self.name, self.values[rows], self.is_text)


class Plane:
    """The host, or one device."""

    def __init__(self, trace: Trace, number: int, name: str) -> None:
        self.trace = trace
        self.number, self.name = number, name
        self.stats = Table[str]()  # the names of stats, and the texts that stats refer to
        self.pieces: list[bytes] = []
        self.named = np.zeros(len(trace.names), np.bool_)  # which of the trace's names occur here

    def describe(self, name: str, value: int | str) -> None:
        """Add a fact of the whole plane."""
        said = number(4, value) if isinstance(value, int) else text(5, value)
        self.pieces.append(text(6, number(1, self.stats[name] + 1) + said))

    def line(self, identity: int, name: str, rows: NDArray[np.intp], *stats: Stat) -> None:
        """Add events that happened one after another."""
        self.named[self.trace.name[rows]] = True
        body = bytearray(number(1, identity) + text(2, name))
        for first in range(0, len(rows), AT_ONCE):
            body += self._events(rows[first : first + AT_ONCE], [s.of(slice(first, first + AT_ONCE)) for s in stats])
        self.pieces.append(text(3, body))

    def _events(self, rows: NDArray[np.intp], stats: list[Stat]) -> bytes:
        parts = [
            numbers(1, self.trace.name[rows] + 1),
            numbers(2, self.trace.start[rows] * 1000),
            numbers(3, self.trace.duration[rows] * 1000),
        ]
        for stat in stats:
            key = numbers(1, np.full(len(rows), self.stats[stat.name] + 1))
            value = numbers(7 if stat.is_text else 4, np.maximum(stat.values, 0) + stat.is_text)
            parts.append(messages(4, [key, value], where=stat.values >= 0))
        return written(messages(4, parts))

    def refer(self, name: str, texts: list[str], which: NDArray[np.int64] | NDArray[np.int32]) -> Stat:
        """A fact that is one of these texts, by number; nothing where the text is empty or the number negative."""
        known = np.array([self.stats[t] if t else -1 for t in texts] + [-1], np.int64)
        return Stat(name, known[which], is_text=True)

    def encode(self) -> Iterator[bytes]:
        """The plane as a field of the XSpace."""
        names = [(row + 1, self.trace.names[row]) for row in np.flatnonzero(self.named).tolist()]
        pieces = [number(1, self.number), text(2, self.name), *self.pieces]
        pieces += [_entry(4, key, name) for key, name in names]
        pieces += [_entry(5, key + 1, name) for name, key in self.stats.items()]
        yield varint(1 << 3 | 2) + varint(sum(map(len, pieces)))
        yield from pieces


def _entry(field: int, key: int, name: str) -> bytes:
    """An entry of a map from numbers to named metadata."""
    return text(field, number(1, key) + text(2, number(1, key) + text(2, name)))


def xspace(trace: Trace, host: str) -> Iterator[bytes]:
    """The trace as an XSpace, in pieces. No event may start before 0."""
    yield from host_plane(trace).encode()
    for device in sorted({lane.device for lane in trace.lanes if lane.device >= 0}):
        yield from device_plane(trace, device).encode()
    yield text(4, host)


def host_plane(trace: Trace) -> Plane:
    """A line for each thread, with the steps among its events."""
    numbered = np.array([_last_number(name) for name in trace.names], np.int64)
    number_of = numbered[trace.name]
    # XProf adds the number to a step's name itself
    named = np.where(trace.kind == Kind.STEP, len(trace.names), trace.name)
    trace = replace(trace, names=(*trace.names, "step"), name=named)
    plane = Plane(trace, 1, "/host:CPU")
    about = plane.refer("about", [Detail.of(text).about for text in trace.details], trace.detail)
    lanes = sorted(_lanes(trace, -1), key=lambda found: not found[1].label.startswith(WAITS))  # the waits come first
    for identity, (index, lane) in enumerate(lanes, 1):
        rows = np.flatnonzero(trace.lane == index)
        kind = trace.kind[rows]
        plane.line(
            identity,
            lane.label or f"thread {lane.thread}",
            rows,
            Stat("correlation_id", np.where(kind == Kind.CALL, trace.correlation[rows], -1)),
            Stat("step_num", np.where(kind == Kind.STEP, number_of[rows], -1)),
            Stat("_r", np.where(kind == Kind.STEP, 1, -1)),
            Stat("about", about.values[rows], is_text=True),
        )
    return plane


def device_plane(trace: Trace, device: int) -> Plane:
    """A line for each queue of the device, and what is known of the device."""
    plane = Plane(trace, 2 + device, f"/device:GPU:{device}")
    operators = trace.rows(Kind.OP)
    operator_of = dict(zip(trace.external[operators].tolist(), trace.name[operators].tolist(), strict=True)) | {-1: -1}
    full_names = [f"{name}:{name.rpartition('::')[2]}" for name in trace.names]
    # the last is that of a kernel without details
    launches = [_launch(Detail.of(text)) for text in (*trace.details, "")]
    taken: set[int] = set()
    for index, lane in _lanes(trace, device):
        rows = np.flatnonzero((trace.lane == index) & np.isin(trace.kind, DEVICE))
        identity = lane.thread if isinstance(lane.thread, int) and 0 <= lane.thread < 1 << 31 else index
        while identity in taken:
            identity += 1
        taken.add(identity)
        owner = np.array([operator_of.get(e, -1) for e in trace.external[rows].tolist()], np.int64)
        launch = np.where(trace.detail[rows] < 0, len(trace.details), trace.detail[rows])
        launch = np.where(trace.kind[rows] == Kind.KERNEL, launch, -1)
        copies = Table[str]()
        copy = np.array([copies[_copy(trace, row)] for row in rows.tolist()], np.int64)
        plane.line(
            identity,
            f"Stream #{identity}({_work(trace, rows)})",
            rows,
            Stat("correlation_id", trace.correlation[rows]),
            plane.refer("tf_op", full_names, owner),
            plane.refer("kernel_details", launches, launch),
            plane.refer("memcpy_details", list(copies), copy),
        )
    for name, value in _capabilities(trace, device):
        plane.describe(name, value)
    return plane


def _lanes(trace: Trace, device: int) -> Iterator[tuple[int, Lane]]:
    """The lanes of a device (-1 is the host) on which something happened that the reader of the trace understood."""
    present = set(np.unique(trace.lane[trace.kind != Kind.OTHER]).tolist())
    return ((i, lane) for i, lane in enumerate(trace.lanes) if lane.device == device and i in present)


def _last_number(name: str) -> int:
    found = re.search(r"(\d+)$", name)
    return int(found[1]) if found else 0


def _launch(known: Detail) -> str:
    """The shape of a launch as XProf's table of kernels reads it, which leaves a kernel out that has none: 0 is not known."""
    grid, block = (",".join(map(str, sizes or (0, 0, 0))) for sizes in (known.grid, known.block))
    return (
        f"regs:{known.registers} static_shared:0 dynamic_shared:{known.shared_memory} "
        f"grid:{grid} block:{block} occ_pct:{known.occupancy}"
    )


def _copy(trace: Trace, row: int) -> str:
    """What a copy moved, as XProf shows it; empty for anything else."""
    if trace.kind[row] != Kind.COPY:
        return ""
    direction = re.search(r"[HDP]to[HDP]", trace.names[trace.name[row]])
    return f"kind:{direction[0] if direction else 'DtoD'} size:{max(0, int(trace.bytes[row]))} dest:0 async:1"


def _work(trace: Trace, rows: NDArray[np.intp]) -> str:
    """What a queue mostly does, in XProf's words."""
    if (trace.kind[rows] == Kind.KERNEL).any():
        return "Compute"
    names = " ".join({trace.names[name] for name in trace.name[rows].tolist()})
    return "MemcpyH2D" if "HtoD" in names else "MemcpyD2H" if "DtoH" in names else "Memcpy"


def _capabilities(trace: Trace, device: int) -> Iterator[tuple[str, int | str]]:
    """What the trace says of the device, under XProf's names."""
    lanes = tuple(lane for lane in trace.lanes if lane.device == device)
    (facts,) = figures.devices(replace(trace, lanes=lanes))
    for name, key in (
        ("device_type_string", "name"),
        ("memory_size", "totalGlobalMem"),
        ("core_count", "numSms"),
        ("compute_cap_major", "computeMajor"),
        ("compute_cap_minor", "computeMinor"),
    ):
        if isinstance(value := facts.get(key), (int, str)):
            yield name, value
