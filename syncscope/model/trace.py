"""The events of one recording, as columns, in nanoseconds of one clock."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum, IntFlag
from typing import Any, NotRequired, TypedDict, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from syncscope.model.detail import Detail
from syncscope.model.memory import Allocations
from syncscope.model.source import Place
from syncscope.model.words import all_visible, visible

T = TypeVar("T")


class Kind(IntEnum):
    """What an event is."""

    STEP = 0  # one training step, on the host
    OP = 1  # an operator: aten::mm, an autograd node
    ANNOTATION = 2  # the user's record_function
    PYTHON = 3  # the activation of a Python function
    CALL = 4  # a call into the driver or the runtime
    READ = 5  # a Python expression that needs a value of the device
    COMPILE = 6  # the driver builds a program: no wait of the user's
    KERNEL = 7
    COPY = 8
    FILL = 9
    SYNC = 10  # the driver's own record of which queue a wait waited for (CUPTI's cuda_sync)
    OTHER = 11


class Flag(IntFlag):
    """What the recorder itself knew of an event."""

    NONE = 0
    BLOCKING = 1  # the call returns only when the device has done what it waits for
    FALLBACK = 2  # an operator that the device does not have and the CPU ran
    ANEW = 4  # an operator that was called as none before, with other shapes or numbers: the host had to decide what to launch


WAY = 4
"""The bits of an event's flags from here on tell apart which calls of the driver one line makes: by which of the calls in
torch's own Python it came to each, as a number from 1 to 15; 0 where it came by none, or none is known."""


@dataclass(frozen=True, slots=True)
class Lane:
    """Where events happen one after another: a host thread, or a queue of device number `device` (-1 on the host).

    `thread` is the operating system's thread number, or the number or name of the queue (CUDA's stream).
    """

    process: int | str
    thread: int | str
    device: int = -1
    label: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """A row of a `Trace`. Times are ns; -1 and None mean not known."""

    kind: Kind
    name: str
    lane: Lane
    start: int
    duration: int
    correlation: int = -1  # joins a call with the device work it launched
    external: int = -1  # joins an operator with the calls made in it
    bytes: int = -1
    place: Place | None = None
    column: int = -1
    flags: Flag = Flag.NONE
    detail: str = ""  # further facts, as a JSON object: `Detail.of` reads it
    caller: Place | None = None  # where `place` is a library's: the user's line that led there
    forward: Place | None = None  # of a launch in the backward pass: the line whose gradient it is
    function: str = ""  # in which `place` stands

    @property
    def end(self) -> int:
        """When it was over, ns."""
        return self.start + self.duration


class StepLengths(TypedDict):
    """How long steps that are alike took: their number, how many were left out because they warmed up, median and quartiles.

    They come from so many times that were `measured`: short steps are timed together.
    """

    steps: int
    left_out: int
    median_ns: int
    low_ns: int
    high_ns: int
    measured: NotRequired[int]


class Meta(TypedDict, total=False):
    """What is known of a recording as a whole; JSON values only."""

    origin_ns: int  # when its time 0 was, Unix time
    monotonic_ns: int  # the same by CLOCK_MONOTONIC; of a recording that is not yet cut
    until: int  # its time until which it is whole, where the disk was full before its end; of one that is not yet cut
    notes: list[str]  # what was lost or guessed while recording or reading, in words
    devices: list[Any]  # what is known of each, by device number: an object in Kineto's words, or what a file had there
    clocks: dict[str, dict[str, Any]]  # how the time stamps of each source were brought to the host's clock
    programs: list[str]  # the texts of OpenCL C that were given to the driver, each once
    recorder: str  # "syncscope" where it is our own
    host: str
    cut: bool  # its file ends before its list of events does
    damaged: bool  # what is packed in its file fails its check
    torn: bool  # what stands before that list is not whole
    ended_early: str  # why the recording ended before the program did, though it was to go on
    ended_by: str  # the error, or signal, of the program's own that ended what was recorded
    rank: int
    world_size: int
    backend: str  # of the process group
    groups: dict[str, list[int]]  # the ranks of each process group that this rank is in, by its name
    record_shapes: bool
    with_stack: bool
    unknown: dict[str, int]  # events of categories that nobody here knows, where no device is known to have worked
    dry: bool  # the device was only pretended
    command: str  # how it is run again, after `syncscope verify`; of this process alone, and never read from a file
    stands_for: str  # the device that the program asked for, where it was given another
    untraced: StepLengths  # steps of the same run in which nothing was recorded, and no hook was in place
    traced: StepLengths  # those of the recording, timed in the same way
    pinned: float | None  # bytes a ns that the device fetches from pinned memory, as measured on that machine
    read_ns: float  # what noting a read took besides it, usually
    # of files that wait: by line, a hash of its text, then of each expression that waits there
    lines: dict[str, dict[str, str]]
    files: dict[str, str]
    verified: dict[str, Any]  # what fixes were found to do, tried inside of the run: as `syncscope verify -o` has it
    others: float  # the part of its time (0 to 1) for which other processes kept this one from the processors


_DTYPES = {
    "kind": np.uint8,
    "name": np.int32,
    "lane": np.int32,
    "start": np.int64,
    "duration": np.int64,
    "correlation": np.int64,
    "external": np.int64,
    "bytes": np.int64,
    "place": np.int32,
    "column": np.int32,
    "flags": np.uint8,
    "detail": np.int32,
    "caller": np.int32,
    "forward": np.int32,
}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Trace:
    """The events of one recording as columns of equal length, ordered by start.

    `name`, `lane`, `place` and `detail` hold indices into `names`, `lanes`, `places` and `details`; -1 is none. Times are ns
    since the recording's origin, `meta["origin_ns"]`. What was recorded of devices' memory is beside the events: `memory`.

    A call of the driver and a read stand at their innermost line outside of torch, `place`; where that is a library's, `caller`
    is the user's line that led there. What the backward pass launches has the line that called it as `place`, and as `forward`
    the line of the operator whose gradient it is. Both are indices into `places`, too, and -1 in recordings that do not know;
    they may be read-only. `functions` names the function of each place, as far as it goes: `function` asks it.
    """

    kind: NDArray[np.uint8]
    name: NDArray[np.int32]
    lane: NDArray[np.int32]
    start: NDArray[np.int64]
    duration: NDArray[np.int64]
    correlation: NDArray[np.int64]
    external: NDArray[np.int64]
    bytes: NDArray[np.int64]
    place: NDArray[np.int32]
    column: NDArray[np.int32]
    flags: NDArray[np.uint8]
    detail: NDArray[np.int32]
    caller: NDArray[np.int32]
    forward: NDArray[np.int32]
    names: tuple[str, ...] = ()
    lanes: tuple[Lane, ...] = ()
    places: tuple[Place, ...] = ()
    details: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    meta: Meta = field(default_factory=Meta)
    memory: Allocations | None = None

    @classmethod
    def of(cls, events: Iterable[Event], **meta: Unpack[Meta]) -> Trace:
        """A trace of these events, ordered by start (longer first where they start together)."""
        rows = sorted(events, key=lambda e: (e.start, -e.duration))
        names, lanes, places, details = Table[str](), Table[Lane](), Table[Place](), Table[str]()
        columns: dict[str, list[int]] = {
            "kind": [int(e.kind) for e in rows],
            "name": [names[e.name] for e in rows],
            "lane": [lanes[e.lane] for e in rows],
            "start": [e.start for e in rows],
            "duration": [e.duration for e in rows],
            "correlation": [e.correlation for e in rows],
            "external": [e.external for e in rows],
            "bytes": [e.bytes for e in rows],
            "place": [-1 if e.place is None else places[e.place] for e in rows],
            "column": [e.column for e in rows],
            "flags": [int(e.flags) for e in rows],
            "detail": [-1 if not e.detail else details[e.detail] for e in rows],
            "caller": [-1 if e.caller is None else places[e.caller] for e in rows],
            "forward": [-1 if e.forward is None else places[e.forward] for e in rows],
        }
        told = {e.place: e.function for e in reversed(rows) if e.function}
        arrays: dict[str, Any] = {k: np.array(v, _DTYPES[k]) for k, v in columns.items()}
        return cls(
            **arrays,
            names=tuple(names),
            lanes=tuple(lanes),
            places=tuple(places),
            details=tuple(details),
            functions=tuple(told.get(place, "") for place in places) if told else (),
            meta=meta,
        )

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, row: int) -> Event:
        detail = int(self.detail[row])
        place, caller, forward = (int(column[row]) for column in (self.place, self.caller, self.forward))
        return Event(
            kind=Kind(int(self.kind[row])),
            name=self.names[self.name[row]],
            lane=self.lanes[self.lane[row]],
            start=int(self.start[row]),
            duration=int(self.duration[row]),
            correlation=int(self.correlation[row]),
            external=int(self.external[row]),
            bytes=int(self.bytes[row]),
            place=None if place < 0 else self.places[place],
            column=int(self.column[row]),
            flags=Flag(int(self.flags[row])),
            detail="" if detail < 0 else self.details[detail],
            caller=None if caller < 0 else self.places[caller],
            forward=None if forward < 0 else self.places[forward],
            function=self.function(place),
        )

    def __iter__(self) -> Iterator[Event]:
        return (self[row] for row in range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same events and meta, however their tables are numbered."""
        if not isinstance(other, Trace):
            return NotImplemented
        return (
            len(self) == len(other)
            and self.meta == other.meta
            and self._allocated() == other._allocated()
            and all(a == b for a, b in zip(self, other, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]

    def _allocated(self) -> list[tuple[Any, ...]]:
        """What was recorded of memory, without the numbers of tables."""
        if self.memory is None:
            return []
        *facts, lanes, places = (values.tolist() for values in self.memory.columns().values())
        lane = [self.lanes[n] if n >= 0 else None for n in lanes]
        place = [self.places[n] if n >= 0 else None for n in places]
        return list(zip(*facts, lane, place, strict=True))

    def known(self, row: int) -> Detail:
        """The further facts of an event."""
        code = self.detail[row]
        return Detail.of(self.details[code] if code >= 0 else "")

    def function(self, place: int) -> str:
        """The function in which a place stands, by its number in `places`; "" where that is not known."""
        return self.functions[place] if 0 <= place < len(self.functions) else ""

    @property
    def end(self) -> NDArray[np.int64]:
        """When each event was over, ns."""
        return self.start + self.duration

    def visible(self) -> Trace:
        """The trace with every name in it `visible`: for one that a stranger made. Texts of programs are no names, and stay."""
        tables = {name: getattr(self, name) for name in ("names", "lanes", "places", "functions")}
        tables["meta"] = {key: of for key, of in self.meta.items() if key != "programs"}
        shown = {name: new for name, old in tables.items() if (new := all_visible(old)) is not old}
        if "programs" in self.meta and "meta" in shown:
            shown["meta"] = {**shown["meta"], "programs": self.meta["programs"]}
        details = tuple(map(_visible_detail, self.details))
        return replace(self, **shown, details=details) if shown or details != self.details else self

    def rows(self, *kinds: Kind) -> NDArray[np.intp]:
        """Row numbers of the events of these kinds, by start."""
        return np.flatnonzero(np.array([kind in kinds for kind in range(256)], bool)[self.kind])

    def take(self, rows: NDArray[Any]) -> Trace:
        """The trace of these rows only (indices or a mask); the tables are shared."""
        kept: dict[str, Any] = {column: getattr(self, column)[rows] for column in _DTYPES}
        tables = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _DTYPES}
        return Trace(**kept, **tables)


def _visible_detail(text: str) -> str:
    """A detail whose texts are visible: in its JSON, a control character may be hidden behind a backslash."""
    if "\\" in text:
        try:
            told = json.loads(text)
            shown = all_visible(told)
        except (ValueError, RecursionError):
            return visible(text)
        return text if shown is told else json.dumps(shown)
    return visible(text)


DEVICE = (Kind.KERNEL, Kind.COPY, Kind.FILL)
"""The kinds of event that a device works on."""

WAITING = "host waits"
WAITS = f"{WAITING} (syncscope)"
"""So begins the label of rows that our files have for other viewers: the waits once more, with names. None was recorded."""


def numbers_used(codes: NDArray[Any]) -> list[int]:
    """Which numbers of a table are among these, in order: they are small, and counting them is faster than to sort them."""
    found: list[int] = np.flatnonzero(np.bincount(codes)).tolist() if len(codes) else []
    return found


class Table(dict[T, int]):
    """Values numbered in the order in which they are first asked for."""

    def __missing__(self, value: T) -> int:
        self[value] = number = len(self)
        return number
