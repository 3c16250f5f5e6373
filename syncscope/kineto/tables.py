"""What the codes of a file's columns stand for: lanes, places, details and the facts beside the events."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from syncscope.kineto.values import Column, integer, number
from syncscope.kineto.verified import is_verified
from syncscope.model.detail import KEYS
from syncscope.model.source import Place
from syncscope.model.trace import Kind, Lane, Meta, Table

DETAILS = (  # our names of the arguments that are kept as they are: first the raw ones, then WORDS
    *("Input Dims", "Input type", "module", "collective", "process_group", "group_size"),
    *("group_ranks", "elements", "sync_kind", "wait_on_stream", "wait_on_record"),
)


class LaunchShape(NamedTuple):
    """What is said of a kernel's launch, as raw parts: there are few different ones, however many launches."""

    grid: bytes
    block: bytes
    registers: bytes
    shared_memory: bytes
    occupancy: bytes


FRAME = re.compile(r"(?P<path>.+?)\((?P<line>[0-9]{1,9})\): ")
LIBRARY = re.compile(r"(?:^|/)(?:site-packages|dist-packages|torch|torchvision|lib/python3[.\d]*)/|^<")


def innermost(stack: str) -> Place | None:
    """The user's line in Kineto's `Call stack` (innermost frame first): the first frame outside of torch and packages."""
    frames = [Place(m["path"], int(m["line"])) for part in str(stack).split(";") if (m := FRAME.match(part.strip()))]
    return next((f for f in frames if not LIBRARY.search(f.path)), frames[0] if frames else None)


def is_ours(head: dict[str, Any]) -> bool:
    """Whether a file says that this package wrote it."""
    own = head.get("syncscope")
    return isinstance(own, dict) and isinstance(own.get("lanes"), list)


def merged(values: list[Any]) -> tuple[Column, list[Any]]:
    """A table in which no value stands twice, and by its old code the new one of each; None is no value."""
    table = Table[Any]()
    new = np.array([-1 if v is None else table[v] for v in values] + [-1], np.int32)
    return new, list(table)  # code -1 picks the last


def _json(raw: Any) -> Any:
    """A raw part's value, also where it is no UTF-8."""
    return msgspec.json.decode(bytes(raw).decode(errors="replace"))


def detail(key: Any) -> str | None:
    """The JSON object of raw parts; our own text as it was written."""
    if isinstance(key, bytes):
        return str(_json(key)) if key[:1] == b'"' else key.decode(errors="replace")
    if isinstance(key, LaunchShape):
        said = {KEYS.get(name, name): _json(raw) for name, raw in key._asdict().items() if raw}
        return msgspec.json.encode(said).decode()
    parts = [_json(raw) if raw else None for raw in key[:2]] + list(key[2:])
    more: Any = {}
    if len(key) == 4:
        more = {"Concrete Inputs": _json(key[3])}
    elif len(key) == 5:
        more = _json(key[3])
    if len(key) in (4, 5):
        parts = parts[:3]
    found = {k: v for k, v in zip(DETAILS, parts, strict=False) if v not in ("", None)}
    found |= more if isinstance(more, dict) else {}
    return msgspec.json.encode(found).decode() if found else None


def place(text: Any) -> Place | None:
    """The place in `train.py:42`."""
    path, _, line = str(text).rpartition(":")
    return Place(path, int(line)) if re.fullmatch("-?[0-9]{1,9}", line) else None


def own_lanes(keys: list[Any], table: list[Any]) -> list[Lane]:
    """The lanes of a file of our own: those of its table."""
    known = {}
    for entry in table:
        if isinstance(entry, list) and len(entry) == 6 and isinstance(entry[4], int):
            pid, tid, process, thread, device, label = entry
            if not (isinstance(pid, (int, str)) and isinstance(tid, (int, str))):
                continue
            known[pid, tid] = Lane(number(process, text=True), number(thread, text=True), integer(device), str(label))
    return [known.get(tuple(key[:2])) or lane(key, {}) for key in keys]


class Lines(NamedTuple):
    """The lines that a file of our own numbers: its places and their functions, and in each line the numbers of a place, of
    its caller's and of its forward operator's."""

    places: list[Place | None]
    names: list[str]
    lines: NDArray[np.int32]  # the last is none

    def columns(self, at: Column | None, codes: Column, count: int) -> dict[str, Column]:
        """Place, caller and forward of each event, by its line; `codes` are the new numbers of our places, and -1."""
        words = ("place", "caller", "forward")
        if at is None:  # nobody knows of any: one value for all takes no memory
            return dict.fromkeys(words, np.broadcast_to(np.int32(-1), count))
        lines = codes[self.lines]
        at[(at < 0) | (at >= len(lines))] = -1
        return {word: lines[at, number] for number, word in enumerate(words)}

    def functions(self, places: list[Place]) -> tuple[str, ...]:
        """The function of each of these places."""
        known = {place: name for place, name in zip(self.places, self.names, strict=True) if name}
        return tuple(known.get(place, "") for place in places) if any(self.names) else ()


def own_lines(own: dict[str, Any]) -> Lines:
    """The lines of a file of our own, as far as they are what they should be."""
    places: list[Place | None] = []
    names: list[str] = []
    for path, line, name in _triples(own.get("places")):
        well = isinstance(path, str) and isinstance(line, int) and abs(line) < 10**9
        places.append(Place(path, line) if well else None)
        names.append(name if isinstance(name, str) else "")
    lines = [
        [n if isinstance(n, int) and 0 <= n < len(places) else -1 for n in numbers]
        for numbers in _triples(own.get("lines"))
    ]
    return Lines(places, names, np.array([*lines, [-1, -1, -1]], np.int32))


def _triples(table: Any) -> list[list[Any]]:
    entries = table if isinstance(table, list) else []
    return [entry if isinstance(entry, list) and len(entry) == 3 else [None] * 3 for entry in entries]


def own_meta(told: Any) -> Meta:
    """What a file of our own says of its recording, as far as it is of the types that `Meta` names."""
    types: dict[str, type | tuple[type, ...]] = {
        **dict.fromkeys(("origin_ns", "monotonic_ns", "rank", "world_size"), int),
        **dict.fromkeys(("pinned", "read_ns"), (int, float, type(None))),
        **dict.fromkeys(("notes", "devices", "programs"), list),
        **dict.fromkeys(("recorder", "host", "backend", "ended_by", "ended_early", "stands_for"), str),
        **dict.fromkeys(("clocks", "unknown", "lines", "files", "groups"), dict),
        **dict.fromkeys(("cut", "damaged", "torn"), bool),
    }
    known = told.items() if isinstance(told, dict) else ()
    meta: dict[str, Any] = {key: value for key, value in known if isinstance(value, types.get(key, object))}
    if not is_verified(meta.get("verified")):
        meta.pop("verified", None)
    meta.pop("command", None)  # it is shown to be pasted into a shell
    if "notes" in meta:
        meta["notes"] = [note for note in meta["notes"] if isinstance(note, str)]
    if not all(isinstance(text, str) for text in meta.get("programs", ())):
        del meta["programs"]
    for name, kind in (("clocks", dict), ("unknown", int), ("lines", dict), ("files", str), ("groups", list)):
        if not all(isinstance(v, kind) for v in meta.get(name, {}).values()):
            del meta[name]
    if not all(isinstance(text, str) for texts in meta.get("lines", {}).values() for text in texts.values()):
        del meta["lines"]
    return cast(Meta, meta)


def lane(key: Any, labels: dict[tuple[Any, Any], str]) -> Lane:
    """The lane of (pid, tid), or of work: (pid, tid, device, stream)."""
    pid, tid = key[0], key[1]
    label = labels.get((str(pid), str(tid)), "")
    if len(key) == 2:
        return Lane(number(pid), number(tid), -1, label)
    device = integer(key[2])
    if device < 0:
        device = max(0, integer(pid))
    stream = number(key[3] if key[3] is not None and key[3] != "" else tid)
    return Lane(number(pid), stream, device, label)


def name_kinds(columns: dict[str, Column], names: tuple[str, ...], places: list[Place | None]) -> None:
    """What only the name tells: steps, and where a Python function begins."""
    kind, name, place = columns["kind"], columns["name"], columns["place"]
    is_step = _by_name(names, lambda n: n.startswith("ProfilerStep#"))
    kind[is_step[name] & ((kind == Kind.OP) | (kind == Kind.ANNOTATION))] = Kind.STEP
    rows = np.flatnonzero((kind == Kind.PYTHON) & (place < 0))
    of_name = np.full(len(names), -1, np.int32)
    for code in np.unique(name[rows]).tolist():
        found = FRAME.match(names[code])
        if found:
            of_name[code] = len(places)
            places.append(Place(found["path"], int(found["line"])))
    place[rows] = of_name[name[rows]]


def _by_name(names: tuple[str, ...], test: Callable[[str], bool]) -> NDArray[np.bool_]:
    return np.array([test(n) for n in names], bool)


def _groups(told: Any) -> dict[str, list[int]]:
    """The ranks of each process group by its name, of those that are said whole."""
    found = {}
    for one in told if isinstance(told, list) else ():
        name, ranks, size = (
            (one.get(key) for key in ("pg_name", "ranks", "pg_size")) if isinstance(one, dict) else [None] * 3
        )
        if (
            isinstance(name, str)
            and isinstance(ranks, list)
            and len(ranks) == size
            and all(isinstance(r, int) for r in ranks)
        ):
            found[name] = ranks
    return found


def meta_of(head: dict[str, Any], start: Column, notes: list[str]) -> Meta:
    """What the file says of the recording; its first event begins at 0 from now on."""
    base = integer(head.get("baseTimeNanoseconds", 0))
    first = int(start.min()) if len(start) else 0
    start -= first
    meta: dict[str, Any] = {"origin_ns": max(base, 0) + first}
    if isinstance(head.get("deviceProperties"), list):
        meta["devices"] = head["deviceProperties"]
    job = head.get("distributedInfo")
    if isinstance(job, dict):
        meta |= {k: job[k] for k in ("rank", "world_size") if isinstance(job.get(k), int)}
        meta |= {k: job[k] for k in ("backend",) if isinstance(job.get(k), str)}
        if groups := _groups(job.get("pg_config")):
            meta["groups"] = groups
    for key in ("record_shapes", "with_stack"):
        if head.get(key):
            meta[key] = True
    if notes:
        meta["notes"] = notes
    return cast(Meta, meta)
