"""JSON text in pieces -> batches of typed events, and everything beside them; what is broken is left out and counted.

`traceEvents` is cut between two events at a place that a pattern guesses, and msgspec decodes what lies before it. A guess
that was wrong, or damage in the file, shows as a decoding error: then the events of this batch are taken one by one.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain
from typing import Any

import msgspec

from syncscope.errors import UserError
from syncscope.kineto.source import Unpacking

BATCH = 1 << 18  # bytes of JSON decoded at once: what comes of them stays in the caches until it is in columns
LARGEST = 16 << 20  # bytes in which at least one whole event must lie, and that the keys beside the events may take
MOST = 4 << 30
"""Bytes of unpacked text that are read: some 20 million events, eight times what the viewers of such files take."""
SMALLEST = 80  # bytes of text that an event takes in a real recording: `MOST` holds for the memory of smaller ones, too
WRONG_CUTS = 8  # how many cuts inside of one event are looked past
DEEPEST = 60  # levels of a value beside the events
HOPELESS = 1000  # broken events after which no cut is looked past any more
NOTHING = msgspec.Raw()

PACKED = {b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip", b"\xfd7zXZ": "xz", b"BZh": "bzip2"}
HEADER = 256  # bytes at the begin of a file, which name the first that is packed in it
START = re.compile(rb'(?<!\\)"traceEvents"\s*:\s*\[')
BETWEEN = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|ts|pid|tid|id|bp|s|args|dur|tts|cname)"\s*:)')
CLOSE = re.compile(rb"\}\s*(?:,\s*)?\]")
AFTER = re.compile(rb'\s*(?:,\s*"|\}\s*\Z|\Z)')  # the list of events
NOT_A_NUMBER = re.compile(rb"([:,\[]\s*)[+-]?(?:nan|inf|infinity)(?=\s*[,\]}])", re.IGNORECASE)
BAD_ESCAPE = re.compile(rb'\\(\\|["/bfnrt]|u[0-9a-fA-F]{4})|\\')


class Args(msgspec.Struct, gc=False):
    """The arguments that are used, under whatever name a version gave them; all others are skipped without being built."""

    external: Any = msgspec.field(default=-1, name="External id")
    external_2021: Any = msgspec.field(default=-1, name="external id")
    correlation: Any = -1
    device: Any = -1
    stream: Any = None
    bytes: Any = -1
    name: Any = None  # of a process or thread
    labels: Any = None
    stack: Any = msgspec.field(default="", name="Call stack")
    modules: Any = msgspec.field(default="", name="Module Hierarchy")
    collective: Any = msgspec.field(default="", name="Collective name")
    group: Any = msgspec.field(default="", name="Process Group Name")
    group_size: Any = msgspec.field(default=None, name="Group size")
    group_ranks: Any = msgspec.field(default="", name="Process Group Ranks")
    elements: Any = msgspec.field(default=None, name="In msg nelems")
    sync_kind: Any = msgspec.field(default="", name="cuda_sync_kind")
    wait_on_stream: Any = None
    wait_on_record: Any = msgspec.field(default=None, name="wait_on_cuda_event_record_corr_id")
    # of `[memory]`
    device_type: Any = msgspec.field(default=-1, name="Device Type")
    device_id: Any = msgspec.field(default=-1, name="Device Id")
    address: Any = msgspec.field(default=-1, name="Addr")
    asked: Any = msgspec.field(default=0, name="Bytes")
    allocated: Any = msgspec.field(default=-1, name="Total Allocated")
    reserved: Any = msgspec.field(default=-1, name="Total Reserved")
    # Raw: kept as text, built only once for each different one
    dims: msgspec.Raw = msgspec.field(default=NOTHING, name="Input Dims")
    types: msgspec.Raw = msgspec.field(default=NOTHING, name="Input type")
    concrete: msgspec.Raw = msgspec.field(default=NOTHING, name="Concrete Inputs")
    grid: msgspec.Raw = NOTHING
    block: msgspec.Raw = NOTHING
    registers: msgspec.Raw = msgspec.field(default=NOTHING, name="registers per thread")
    shared_memory: msgspec.Raw = msgspec.field(default=NOTHING, name="shared memory")
    occupancy: msgspec.Raw = msgspec.field(default=NOTHING, name="est. achieved occupancy %")
    # our own
    kind: Any = msgspec.field(default=-1, name="as")
    place: Any = ""
    at: Any = -1  # in the table of lines
    column: Any = -1
    flags: Any = 0
    detail: msgspec.Raw = NOTHING


class JsonEvent(msgspec.Struct, gc=False):
    """One entry of `traceEvents`."""

    ph: Any = None
    cat: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: Any = None
    dur: Any = 0
    args: Args | None = None


class Times(msgspec.Struct, gc=False):
    """The times of an event to the last digit, where a float would round them."""

    ph: Any = None
    ts: Decimal | None = None
    dur: Decimal | None = Decimal(0)


_EVENTS = msgspec.json.Decoder(list[JsonEvent])
_EVENT = msgspec.json.Decoder(JsonEvent)
_TIMES = msgspec.json.Decoder(list[Times])


_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@dataclass
class Scan:
    """What is found while the text goes by; `head` is the object without its events, `lost` counts broken ones."""

    head: dict[str, Any] = field(default_factory=dict)
    lost: int = 0
    first_lost: int = -1  # byte offset in the JSON text
    cut: bool = False  # the text ends before the list of events does
    torn: bool = False  # what stands before the list is not whole
    unpacking: Unpacking = field(default_factory=Unpacking)
    _offset: int = 0

    @property
    def notes(self) -> list[str]:
        """What is to be said of how it was read."""
        return self.unpacking.notes

    def batches(self, pieces: Iterator[bytes], name: str) -> Iterator[tuple[list[JsonEvent], bytes]]:
        """Events as they come, each batch with its text (a JSON list, for `times`).

        Time is linear in the text, memory is that of a few times `LARGEST`, whatever the text is.

        Raises:
            UserError: there is no list of events in it.
        """
        rest = yield from self._body(*self._before(pieces, name), pieces)
        if rest is None:
            self.cut = True
            self.notes.append("the file ends inside the list of events; what came before is used")
            return
        beside = bytearray()
        for piece in chain((rest,), pieces):
            beside += piece
            if len(beside) > LARGEST:
                self.notes.append(f"the keys after the events are more than {LARGEST >> 20} MiB and were left out")
                return
        tail = bytes(beside).strip()
        self._keys(b"{" + tail.lstrip(b", \r\n\t") if tail not in (b"", b"]") else b"{}", "after")

    def _before(self, pieces: Iterator[bytes], name: str) -> tuple[bytes, bool]:
        """The text from the first event on, and whether the file is a bare list."""
        text, searched = bytearray(), 0
        for piece in pieces:
            text += piece
            if not searched:
                if bytes(text[:2]) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                    raise UserError(f"{name} is UTF-16, and a trace is UTF-8", "iconv -f UTF-16 -t UTF-8 makes it one")
                text = text.removeprefix(b"\xef\xbb\xbf").lstrip()
                if checkpoint := _checkpoint(bytes(text[:HEADER])):
                    raise UserError(
                        f"{name} is {checkpoint} of PyTorch's, as torch.save writes, and no recording",
                        "recordings are called *.pt.trace.json.gz: `syncscope run` says where it wrote one",
                    )
                if text.startswith(b"\x1f\x8b"):  # what packs it is off by now
                    raise UserError(f"{name} is packed by gzip twice", "unpack it once: gunzip")
                if packer := next((who for magic, who in PACKED.items() if text.startswith(magic)), ""):
                    raise UserError(
                        f"{name} is packed by {packer}, which is not read here", "unpack it, or pack it by gzip"
                    )
            if text[:1] == b"[":
                self._offset = 1
                return bytes(text[1:]), True
            found = START.search(text, max(0, searched - 64))
            if found:
                self._offset = found.end()
                self._keys(bytes(text[: found.start()]).rstrip().rstrip(b",") + b"}", "before")
                return bytes(text[found.end() :]), False
            searched = len(text)
            if (text and text[:1] != b"{") or len(text) > LARGEST:
                break
        if not text and self.unpacking.failure:
            raise UserError(f"{name} cannot be unpacked: {self.unpacking.failure}", "copy it once more")
        kind = "is empty" if not text else "has no list of traceEvents"
        hint = "is it a trace of torch.profiler (export_chrome_trace) or of syncscope?"
        if text[:1] == b"{" and len(text) <= LARGEST and not text.rstrip().endswith(b"}"):
            kind, hint = "ends before its list of traceEvents", "copy it once more, or wait until it has been written"
        raise UserError(f"{name} {kind} (looked at {len(text):,} bytes)", hint)

    def _keys(self, text: bytes, where: str) -> None:
        try:
            found = msgspec.json.decode(text)
        except _BROKEN:
            try:
                found = msgspec.json.decode(repaired(text))
            except _BROKEN as error:
                self.notes.append(f"the keys {where} the events cannot be read: {error}")
                self.torn |= where == "before"
                return
        if isinstance(found, dict):
            deep = [key for key, value in found.items() if _is_deep(value)]
            if deep:
                self.notes.append(f"what the keys {', '.join(deep)} hold is nested too deeply and was left out")
            self.head.update((key, value) for key, value in found.items() if key not in deep)

    def _body(
        self, text: bytes, bare: bool, pieces: Iterator[bytes]
    ) -> Generator[tuple[list[JsonEvent], bytes], None, bytes | None]:
        """Returns what follows the list, None if the file ended before."""
        held, size, done, wanted = [text], len(text), False, BATCH
        while not done:
            while size < wanted:
                piece = next(pieces, None)
                if piece is None:
                    done = True
                    break
                held.append(piece)
                size += len(piece)
            text = b"".join(held)
            cuts = [(len(text), len(text))] if done else _boundaries(text)
            found = None
            for cut, after in cuts:  # noqa: B007  both are used when one has been found
                found = self._decode(text[:cut])
                if found is not None:
                    break
            if found is None:
                if not done and len(text) < LARGEST:  # an event larger than a batch, or cuts inside of one
                    held, wanted = [text], 2 * len(text)  # not a batch more: each time it is read from its begin
                    continue
                cut, after = cuts[0] if cuts else (len(text), len(text))
                found = self._one_by_one(text[:cut])
            events, rest, body = found
            if events:
                yield events, body
            if rest is not None:
                return rest + text[cut:]
            self._offset += after
            held, size, wanted = [text[after:]], len(text) - after, BATCH
        return b"" if bare else None

    def _decode(self, body: bytes) -> tuple[list[JsonEvent], bytes | None, bytes] | None:
        """The events of this text, what follows the list if it ends here, and the text (a list) that was decoded.

        None if the text ends inside of an event.
        """
        whole = b"[" + body + b"]"
        try:
            return _EVENTS.decode(whole), None, whole
        except _BROKEN as error:
            reason = str(error)
        if "truncated" in reason:
            return None
        if "trailing characters" in reason:
            end = body.rfind(b"]", 0, int(reason.rpartition("byte ")[2].rstrip(")")) - 1)
            whole = b"[" + body[: end + 1]
            try:
                return _EVENTS.decode(whole), body[end + 1 :], whole
            except _BROKEN:
                pass
        return self._one_by_one(body)

    def _one_by_one(self, body: bytes) -> tuple[list[JsonEvent], bytes | None, bytes]:
        found: list[tuple[JsonEvent, bytes]] = []
        cuts = [*((m.start() + 1, m.end()) for m in BETWEEN.finditer(body)), (len(body), len(body))]
        start, number, rest = 0, 0, None
        while number < len(cuts) and rest is None:
            event, used = None, number
            tries = WRONG_CUTS if self.lost < HOPELESS else 1
            for used in range(number, min(number + tries, len(cuts))):  # a cut may lie inside of an event
                event, rest, ends_early = _event_and_rest(body, start, cuts[used][0])
                if event is not None or rest is not None:
                    break
                if not ends_early:  # more text makes it no event
                    used = number
                    break
            else:
                used = number
            if event is not None:
                found.append(event)
            elif rest is None and body[start : cuts[used][0]].strip():
                self.lost += 1
                if self.first_lost < 0:
                    self.first_lost = self._offset + start
            number, start = used + 1, cuts[used][1]
        return [event for event, _ in found], rest, b"[" + b",".join(text for _, text in found) + b"]"


def _is_deep(value: Any, levels: int = DEEPEST) -> bool:
    """Whether lists and objects lie in one another over more levels than anything that is of use does."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels == 0 or any(_is_deep(one, levels - 1) for one in inner)


def times(text: bytes) -> list[Times]:
    """The exact times of the events of a batch, in their order."""
    return _TIMES.decode(text)


def repaired(text: bytes) -> bytes:
    """The text as strict JSON where Kineto is known to write other: nan and inf, lone backslashes, broken UTF-8."""
    text = NOT_A_NUMBER.sub(rb"\1null", text)
    text = BAD_ESCAPE.sub(lambda m: m[0] if m[1] else rb"\\", text)
    return text.decode("utf-8", "replace").encode()


def _event_and_rest(body: bytes, start: int, end: int) -> tuple[tuple[JsonEvent, bytes] | None, bytes | None, bool]:
    """The event that body[start:end] is, and what follows the list if it ends there; None for what is not there.

    The third value says whether it ended inside of an event, so that more of the body might make it one.
    """
    text = body[start:end]
    event, ends_early = _mended(text)
    if event is not None:
        return event, None, False
    for number, close in enumerate(CLOSE.finditer(text)):
        if number == WRONG_CUTS:
            break
        if AFTER.match(body, start + close.end()):
            event, _ = _mended(text[: close.start() + 1])
            if event is not None:
                return event, body[start + close.end() :], False
    first = len(text) - len(text.lstrip())
    if text[first : first + 1] == b"]" and AFTER.match(body, start + first + 1):
        return None, body[start + first + 1 :], False
    return None, None, ends_early


def _mended(text: bytes) -> tuple[tuple[JsonEvent, bytes] | None, bool]:
    """One event and the text it was decoded from; None if it is none, and whether it ended too early."""
    strict = repaired(text)
    for attempt in (text, strict):
        try:
            return (_EVENT.decode(attempt), attempt), False
        except _BROKEN:
            continue
    try:
        event = msgspec.json.decode(strict)
    except _BROKEN as error:
        return None, "truncated" in str(error)
    if not isinstance(event, dict):
        return None, False
    event.pop("args", None)  # it was no object
    attempt = msgspec.json.encode(event)
    return (_EVENT.decode(attempt), attempt), False


def _boundaries(text: bytes) -> list[tuple[int, int]]:
    """End of an event and begin of the next, the last few of them, last first."""
    window = 1 << 16
    while True:
        found = [(m.start() + 1, m.end()) for m in BETWEEN.finditer(text, max(0, len(text) - window))]
        if found or window >= len(text):
            return found[: -1 - WRONG_CUTS : -1]
        window *= 16


def _checkpoint(header: bytes) -> str:
    """What kind of checkpoint of PyTorch's a file is that begins so: an archive of which a pickle is the first part, or a bare
    pickle; "" where it is none."""
    if header.startswith(b"PK\x03\x04"):
        return "a checkpoint" if any(part in header for part in (b"/data.pkl", b"/constants.pkl")) else ""
    return "an old checkpoint" if header.startswith(b"\x80\x02\x8a\x0al\xfc\x9cF\xf9") else ""  # its magic number
