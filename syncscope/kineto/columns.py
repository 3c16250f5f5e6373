"""Typed events -> columns, batch by batch: a batch is gone before the next one comes."""

from __future__ import annotations

import contextlib
import re
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import compress
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from syncscope.kineto import memory, tables
from syncscope.kineto.scan import NOTHING, Args, JsonEvent, times
from syncscope.kineto.values import LIMIT, exact_ns, has_huge, integers, nanoseconds, plain
from syncscope.model.memory import Allocations
from syncscope.model.source import Place
from syncscope.model.trace import DEVICE, WAITS, Kind, Lane, Table, Trace

DROPPED = 255
BESIDE = {"gpu_user_annotation", "overhead", "cpu_instant_event", "python_gc", "fwdbwd", "ac2g", "other", "none", ""}
"""Categories that are no work of a device, and are known to be none."""

CATEGORIES = {
    "cpu_op": Kind.OP,
    "operator": Kind.OP,
    "user_annotation": Kind.ANNOTATION,
    "python_function": Kind.PYTHON,
    "runtime": Kind.CALL,  # and all that end so: cuda_runtime, hip_runtime, xpu_runtime, privateuse1_runtime
    "driver": Kind.CALL,
    "read": Kind.READ,
    "compile": Kind.COMPILE,
    "kernel": Kind.KERNEL,
    "concurrent_kernel": Kind.KERNEL,
    "gpu_memcpy": Kind.COPY,
    "memcpy": Kind.COPY,
    "gpu_memset": Kind.FILL,
    "memset": Kind.FILL,
    "cuda_sync": Kind.SYNC,
    "trace": DROPPED,  # the whole recording as one event
}
WORK = {name for name, kind in CATEGORIES.items() if kind in DEVICE} | {"Kernel", "Memcpy", "Memset"}
WORDS = (
    *("modules", "collective", "group", "group_size", "group_ranks", "elements"),
    *("sync_kind", "wait_on_stream", "wait_on_record"),
)
_TYPES: dict[str, type[np.generic]] = {
    **dict.fromkeys(("kind", "flags"), np.uint8),
    **dict.fromkeys(("name", "lane", "place", "column", "detail", "at"), np.int32),
    **dict.fromkeys(("start", "duration", "correlation", "external", "bytes"), np.int64),
}
SAID_BY_US = {"column": -1, "flags": 0}  # what only our own files say, and what it is in those of others
GROWTH = 1.25  # of the columns when they are full: memory that is grown is moved page by page, not copied
FIRST = 1 << 16  # rows
VALUED = re.compile("conv|^record_param_comms$")
"""Operators of which more than tensors is needed: the strides of convolutions, for their output's shape, and ranks."""
_NO_ARGS = Args()
Column = NDArray[Any]


class _Kinds(dict[Any, int]):
    def __missing__(self, category: Any) -> int:
        name = str(category).lower()
        kind = CATEGORIES.get(name)
        if kind is None:
            kind = Kind.CALL if name.endswith(("_runtime", "_driver")) else Kind.OTHER
        self[category] = kind
        return kind


def _narrow(numbers: Column) -> Column:
    """Numbers that tell events apart, in half the memory where they are small: nobody counts with them."""
    return numbers.astype(np.int32) if len(numbers) and numbers.max() < 2**31 and numbers.min() >= -(2**31) else numbers


class Columns:
    """Collects the events of one file; `trace` is the end of it."""

    def __init__(self, head: dict[str, Any]) -> None:
        self.lost = 0
        self._head = head  # is filled while the file is read; ours stands before the events
        self._filled: dict[str, Column] = {column: np.empty(0, kind) for column, kind in _TYPES.items()}
        self._count = 0
        self._kinds = _Kinds()
        self._others = Counter[Any]()  # events by categories that are none of ours
        self._names = Table[Any]()
        self._lanes = Table[tuple[Any, ...]]()
        self._places = Table[Any]()
        self._details = Table[Any]()
        self._labels: dict[tuple[Any, Any], str] = {}
        self._open: dict[tuple[Any, Any], list[tuple[JsonEvent, int]]] = {}
        self._memory: list[Allocations] = []

    def add(self, events: list[JsonEvent], text: bytes) -> None:
        """Take up a batch; `text` is the JSON list it was decoded from."""
        if has_huge(text):
            _without_huge(events)
        phases = [e.ph for e in events]
        whole = [e for e in events if e.ph == "X"]
        if len(whole) < len(events):
            if "M" in phases:
                for event in events:
                    if event.ph == "M":
                        self._label(event)
            if "B" in phases or "E" in phases:
                self._pair(events)
            if "i" in phases:
                self._allocations(events, text)
        if whole:
            self._rows(whole, *_times(whole, (phase == "X" for phase in phases), text))

    def _allocations(self, events: list[JsonEvent], text: bytes) -> None:
        marked = [event.ph == "i" and memory.is_one(event) for event in events]
        if not any(marked):
            return
        instants = list(compress(events, marked))
        time, _ = _times(instants, marked, text)
        try:
            lane, place = self._where(instants)
        except TypeError:  # something is not of the type it always is
            instants = [plain(event) for event in instants]
            lane, place = self._where(instants)
        self._memory.append(memory.columns_of(instants, time, lane, place).take(time > -LIMIT))

    def _where(self, instants: list[JsonEvent]) -> tuple[Column, Column]:
        """The lane and the place of each, by number."""
        said = [e.args.place if e.args else "" for e in instants]
        place = np.array([self._places[0, text] if text else -1 for text in said], np.int64)
        return _codes(self._lanes, [(e.pid, e.tid) for e in instants]), place

    def _rows(self, events: list[JsonEvent], start: Column, duration: Column) -> None:
        try:
            found = self._columns(events, start, duration)
        except (TypeError, ValueError, OverflowError):  # something is not of the type it always is
            found = self._columns([plain(event) for event in events], start, duration)
        count = self._count + len(found["start"])
        for column, part in found.items():
            held = self._filled[column]
            if count > len(held):
                held.resize(max(FIRST, count, int(GROWTH * len(held))), refcheck=False)  # nobody else has it yet
            held[self._count : count] = part
        self._count = count

    def _columns(self, events: list[JsonEvent], start: Column, duration: Column) -> dict[str, Column]:
        kind = np.array([self._kinds[e.cat] for e in events], np.uint8)
        kept = (kind != DROPPED) & (start > -LIMIT) & (duration >= 0)
        left_out = int((~kept & (kind != DROPPED)).sum())
        if not kept.all():
            events = [e for e, k in zip(events, kept.tolist(), strict=True) if k]
            kind, start, duration = kind[kept], start[kept], duration[kept]
        args = [e.args or _NO_ARGS for e in events]
        external = integers([a.external for a in args])
        if len(unsaid := np.flatnonzero(external < 0)):
            external = external.copy()
            external[unsaid] = integers([args[row].external_2021 for row in unsaid.tolist()])
        found = {
            "start": start,
            "duration": duration,
            "external": external,
            "correlation": integers([a.correlation for a in args]),
            "bytes": integers([a.bytes for a in args]),
            "name": _codes(self._names, [e.name for e in events]),
            "lane": self._lane_codes(kind, events, args),
        }
        own = tables.is_ours(self._head)
        if own:
            kinds = integers([a.kind for a in args])
            kind = np.where((kinds >= 0) & (kinds <= max(Kind)), kinds, kind).astype(np.uint8)
            found["column"] = integers([a.column for a in args]).astype(np.int32)
            found["flags"] = integers([a.flags for a in args]).astype(np.uint8)
            found["at"] = integers([a.at for a in args]).astype(np.int32)
        else:
            self._others.update(events[row].cat for row in np.flatnonzero(kind == Kind.OTHER).tolist())
        found["kind"] = kind
        # Kineto has nothing to say of calls and frames beyond their columns: most events need not be looked at
        telling = range(len(kind)) if own else np.flatnonzero((kind != Kind.CALL) & (kind != Kind.PYTHON)).tolist()
        found["place"] = self._places_of(args, telling)
        found["detail"] = self._details_of(events, args, telling)
        self.lost += left_out
        return found

    def _lane_codes(self, kind: Column, events: list[JsonEvent], args: list[Args]) -> Column:
        codes = _codes(self._lanes, [(e.pid, e.tid) for e in events])
        on_device = np.flatnonzero((kind >= Kind.KERNEL) & (kind != Kind.SYNC)).tolist()
        where = [(events[row], args[row]) for row in on_device]
        keys = [
            (e.pid, e.tid, a.device, a.stream) if a.device != -1 or e.cat in WORK else (e.pid, e.tid) for e, a in where
        ]
        codes[on_device] = _codes(self._lanes, keys)
        return codes

    def _places_of(self, args: list[Args], rows: Iterable[int]) -> Column:
        places, table = np.full(len(args), -1, np.int32), self._places
        for row in rows:
            a = args[row]
            if a.stack:
                places[row] = table[1, a.stack]
            elif a.place:
                places[row] = table[0, a.place]
        return places

    def _details_of(self, events: list[JsonEvent], args: list[Args], rows: Iterable[int]) -> Column:
        """Details by the text of their parts: each different one is turned into JSON once, at the end.

        Values of arguments that are no tensors are kept of `VALUED` operators only: the learning rates and indices of others
        would make a detail of each event.
        """
        table = self._details
        codes = np.full(len(args), -1, np.int32)
        for row in rows:
            a = args[row]
            if a.collective or a.sync_kind or a.wait_on_stream is not None:
                codes[row] = table[bytes(a.dims), bytes(a.types), *(getattr(a, k) for k in WORDS)]
            elif a.dims is not NOTHING:
                key = bytes(a.dims), bytes(a.types), a.modules
                if a.detail is not NOTHING:  # our own: the rest of what we know, beside what viewers show
                    codes[row] = table[(*key, bytes(a.detail), True)]
                elif a.concrete is not NOTHING and VALUED.search(str(events[row].name)):
                    codes[row] = table[(*key, bytes(a.concrete))]
                else:
                    codes[row] = table[key]
            elif a.detail is not NOTHING:
                codes[row] = table[bytes(a.detail)]
            elif a.grid is not NOTHING:
                shape = bytes(a.grid), bytes(a.block), bytes(a.registers), bytes(a.shared_memory), bytes(a.occupancy)
                codes[row] = table[shape] if shape in table else table[tables.LaunchShape(*shape)]
        return codes

    def _label(self, event: JsonEvent) -> None:
        if event.args is not None and isinstance(event.name, str):
            text = event.args.labels if event.name.endswith("labels") else event.args.name
            if isinstance(text, str) and event.name in ("thread_name", "process_name", "process_labels"):
                where = (str(event.pid), str(event.tid) if event.name == "thread_name" else None)
                self._labels.setdefault(where, text)

    def _pair(self, events: Iterable[JsonEvent]) -> None:
        """Begin and end of one event, written apart."""
        for event in events:
            if event.ph not in ("B", "E"):
                continue
            start, _ = nanoseconds([event.ts])
            stack = self._open.setdefault((str(event.pid), str(event.tid)), [])
            if event.ph == "B":
                stack.append((event, int(start[0])))
            elif stack:
                first, begin = stack.pop()
                self._rows([first], np.array([begin]), np.array([start[0] - begin]))
            else:
                self.lost += 1

    def _recorded(self, columns: dict[str, Column], lanes: list[Lane]) -> dict[str, Column]:
        """These columns without the rows for other viewers: what is in them was recorded once, and is counted once."""
        kept = ~np.array([lane.label.startswith(WAITS) for lane in lanes], bool)[columns["lane"]]
        if kept.all():
            return columns
        self._count = int(kept.sum())
        return {name: columns.pop(name)[kept] for name in list(columns)}

    def trace(self, notes: list[str]) -> Trace:
        """The events as a trace ordered by start."""
        head = self._head
        self.lost += sum(len(stack) for stack in self._open.values())
        columns: dict[str, Any] = self._filled
        # of a file of others: one value stands for all
        absent = [name for name in SAID_BY_US if not len(columns[name])]
        for name in (*absent, *(["at"] if not len(columns["at"]) else [])):
            del columns[name]
        for column in columns.values():
            column.resize(self._count, refcheck=False)
        start, duration = columns["start"], columns["duration"]
        if (
            len(start)
            and not ((start[1:] > start[:-1]) | ((start[1:] == start[:-1]) & (duration[1:] <= duration[:-1]))).all()
        ):
            order = _by_start(start, duration)
            del start, duration
            for name in columns:
                columns[name] = columns[name][order]
        for name in absent:
            columns[name] = np.broadcast_to(_TYPES[name](SAID_BY_US[name]), self._count)
        told = Allocations.together(self._memory) if self._memory else None
        names = tuple(n if isinstance(n, str) else str(n) for n in self._names)
        details: list[Any] = [tables.detail(key) for key in self._details]
        if tables.is_ours(head):
            lanes = tables.own_lanes(list(self._lanes), head["syncscope"]["lanes"])
            columns = self._recorded(columns, lanes)
            places: list[Place | None] = [tables.place(text) for _, text in self._places]
            meta = tables.own_meta(head["syncscope"].get("meta"))
            lines = tables.own_lines(head["syncscope"])
            if notes:
                meta["notes"] = [*(meta.get("notes") or ()), *notes]
        else:
            lanes = [tables.lane(key, self._labels) for key in self._lanes]
            places = [tables.place(t) if how == 0 else tables.innermost(t) for how, t in self._places]
            tables.name_kinds(columns, names, places)
            begin = int(columns["start"][0]) if self._count else 0
            meta = tables.meta_of(head, columns["start"], notes)
            if told is not None and self._count:
                told = told.shifted(begin - int(columns["start"][0]))
            unknown = {
                str(name): count for name, count in self._others.most_common() if str(name).lower() not in BESIDE
            }
            if unknown and not np.isin(columns["kind"], DEVICE).any():
                meta["unknown"] = unknown
            lines = tables.own_lines({})
        first = len(places)
        places += lines.places
        lane_codes, lanes = tables.merged(lanes)
        detail_codes, details = tables.merged(details)
        place_codes, known = tables.merged(places)
        for column, codes in (("lane", lane_codes), ("detail", detail_codes), ("place", place_codes)):
            columns[column] = codes[columns[column]]
        found = lines.columns(columns.pop("at", None), place_codes[first:], self._count)
        columns |= found | {"place": np.where(found["place"] >= 0, found["place"], columns["place"])}
        if told is not None:
            told = replace(told, lane=lane_codes[told.lane], place=place_codes[told.place])
        return Trace(
            kind=columns["kind"],
            name=columns["name"],
            lane=columns["lane"],
            start=columns["start"],
            duration=columns["duration"],
            correlation=_narrow(columns.pop("correlation")),
            external=_narrow(columns.pop("external")),
            bytes=columns["bytes"],
            place=columns["place"],
            column=columns["column"],
            flags=columns["flags"],
            detail=columns["detail"],
            caller=columns["caller"],
            forward=columns["forward"],
            names=names,
            lanes=tuple(lanes),
            places=tuple(known),
            details=tuple(details),
            functions=lines.functions(known),
            meta=meta,
            memory=told,
        )


def _times(chosen: list[JsonEvent], marked: Iterable[bool], text: bytes) -> tuple[Column, Column]:
    """Begin and duration, ns, of the events that are marked among those of the text."""
    start, rough = nanoseconds([e.ts for e in chosen])
    duration, rough_too = nanoseconds([e.dur for e in chosen])
    if rough or rough_too:
        with contextlib.suppress(msgspec.ValidationError):  # a time that is no number is lost by either way
            exact = list(compress(times(text), marked))
            start = np.array([exact_ns(t.ts) for t in exact], np.int64)
            duration = np.array([exact_ns(t.dur) for t in exact], np.int64)
    return start, duration


def _without_huge(events: list[JsonEvent]) -> None:
    """Integers of more than 61 bits become text: whoever knows how Python hashes them can give a million of them one hash."""
    for each in (*events, *(e.args for e in events if e.args is not None)):
        for field in each.__struct_fields__:
            value = getattr(each, field)
            if type(value) is int and abs(value) >= LIMIT:
                setattr(each, field, str(value))


def _by_start(start: Column, duration: Column) -> Column:
    """The order of the events: by start, of those that start together the longest first, else as they came.

    They nearly are in it: only those that start together are sorted by two keys, which takes longer.
    """
    order = np.argsort(start, kind="stable")
    same = start[order[1:]] == start[order[:-1]]
    at = np.flatnonzero(np.append(same, False) | np.append(False, same))
    rows = order[at]
    order[at] = rows[np.lexsort((-duration[rows], start[rows]))]
    return order


def _codes(table: Table[Any], values: list[Any]) -> Column:
    return np.frombuffer(array("i", [table[v] for v in values]), np.int32).copy()
