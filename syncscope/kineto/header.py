"""What a trace says before its events: whether it is one, and which rank of which job. Read in a moment, however long it is."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import msgspec

from syncscope.errors import UserError
from syncscope.kineto.source import Unpacking, opened, pieces

HEAD = 1 << 20  # bytes of unpacked text in which it must stand; torch writes it before the events
JOB = re.compile(r'"distributedInfo"\s*:\s*(?=\{)')
EVENTS = re.compile(rb'"traceEvents"\s*:')
BARE_LIST = re.compile(rb'\s*\[\s*\{[^{}\[\]]{0,4096}"ph"\s*:')


def is_trace(path: str | os.PathLike[str]) -> bool:
    """Whether a file has a list of events, or may have one behind all that was looked at."""
    head = _head(path)
    return _begins(head) or (len(head) >= HEAD and head.lstrip()[:1] == b"{")


def holds_events(path: str | os.PathLike[str]) -> bool:
    """Whether a list of events surely begins in the file."""
    return _begins(_head(path))


def _begins(head: bytes) -> bool:
    return bool(EVENTS.search(head) or BARE_LIST.match(head))


def is_other_json(path: str | os.PathLike[str]) -> bool:
    """Whether a file is something else in JSON, comments included. Of one that is empty, cut off, packed wrongly or no text
    nobody can say that: it may have been a recording."""
    text, how = b"", Unpacking()
    try:
        with opened(path) as (_, file):
            for piece in pieces(file, how, HEAD):
                text += piece
    except (UserError, OSError):
        return False
    if how.notes or text.lstrip()[:1] not in (b"{", b"[", b"/") or b"\0" in text:
        return False
    try:
        text.decode()
        msgspec.json.decode(text)
    except UnicodeDecodeError:
        return False
    except msgspec.DecodeError as error:
        return "truncated" not in str(error)
    return True


def rank(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    """Rank and number of ranks; None where the file does not say so before its events, cannot be read, or is a pipe."""
    if not os.path.isfile(path):  # a pipe is read once: what was asked of it is gone
        return None
    head = _head(path)[:HEAD].decode("utf-8", "replace")
    found = JOB.search(head)
    if found is None:
        return None
    try:
        told: dict[str, Any] = json.JSONDecoder().raw_decode(head, found.end())[0]
    except (ValueError, RecursionError):
        return None
    said = told.get("rank"), told.get("world_size")
    return said if isinstance(said[0], int) and isinstance(said[1], int) else None  # type: ignore[return-value]  # both are


def _head(path: str | os.PathLike[str]) -> bytes:
    """The text up to the first of the events; "" of a file that cannot be read."""
    text = b""
    try:
        with opened(path) as (_, file):
            for piece in pieces(file, Unpacking()):
                text += piece
                if len(text) >= HEAD or b'"traceEvents"' in text:
                    break
    except (UserError, OSError):
        return b""
    return text
