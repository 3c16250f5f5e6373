"""Yesterday's answers, by content, configuration and everything that an answer relied on.

One file per project root and version of syncscope. A cache that is damaged, unreadable or unwritable is no cache, and never
an error; neither is one that another user may have written.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

from syncscope import files
from syncscope.errors import UserError
from syncscope.files import regular
from syncscope.heat.reach import Reach
from syncscope.heat.steps import Steps
from syncscope.linter.checked import Checked
from syncscope.linter.config import Config
from syncscope.linter.tracked import still

KEEP = 30 * 24 * 3600  # seconds after which a cache file that nobody used is removed
# what an answer hangs on
ROOMS = "linter", "opencl_c", "rules", "rewrites", "codemod", "tensors", "heat", "project", "model"
LARGEST = 100_000  # files in one cache


class Entry(msgspec.Struct, array_like=True):
    """The answer for one file, and what it holds for."""

    key: str
    relied: list[tuple[str, str]]
    answer: msgspec.Raw


def distrusted() -> str:
    """A line where the cache is not used since others may have written it; "" where it is."""
    folder = files.cache_folder("lint")
    why = files.foreign(folder)
    return f"the cache in {folder} is not used: {why}; `chmod 700 {folder}`, or set {files.CACHE}" if why else ""


class Kept(msgspec.Struct, array_like=True):
    """What a file of the cache holds: answers by path, and what the steps of each project reach."""

    entries: dict[str, Entry]
    steps: dict[str, tuple[str, Reach | None]]


@cache
def stamp() -> str:
    """What of syncscope itself an answer hangs on: its sources, and Python's version."""
    root = Path(__file__).parents[1]
    files = [p for room in ROOMS for p in sorted((root / room).rglob("*")) if p.suffix in (".py", ".json")]
    told = [f"{path.relative_to(root)} {path.stat().st_mtime_ns} {path.stat().st_size}" for path in files]
    return digest("\n".join([sys.version, *told]).encode())


def rules_stamp(folders: tuple[str, ...]) -> str:
    """The content of the user's own rules."""
    files = [path for folder in folders for path in sorted(Path(folder).glob("*.py"))]
    return digest(b"\0".join(regular(path) for path in files)) if files else ""


def digest(raw: bytes) -> str:
    """The hash by which contents are compared; `Project.read` has the same."""
    return hashlib.blake2b(raw, digest_size=16).hexdigest()


class Cache:
    """The answers for files below one root. What is known of the steps of projects is taken over into `steps`."""

    def __init__(self, root: str, steps: Steps) -> None:
        self.path = files.cache_folder("lint") / f"{digest(f'{root} {stamp()}'.encode())}.msgpack"
        self.changed = False
        self._hashes: dict[str, str] = {}
        self._rules = cache(rules_stamp)  # rules may change between two runs of one process
        self._entries: dict[str, Entry] = {}
        self._steps = steps
        with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            raw = files.own(self.path)
            if digest(raw[32:]).encode() == raw[:32]:
                kept = msgspec.msgpack.decode(raw[32:], type=Kept)
                self._entries = kept.entries
                steps.known = kept.steps | steps.known

    def key(self, path: str, raw: bytes, config: Config, named: bool = False) -> str:
        """What must be equal for an answer to hold; of a file that was `named` more is said."""
        own = self._hashes[os.path.abspath(path)] = digest(raw)
        return digest(f"{path}\n{own}\n{config}\n{named}\n{self._rules(config.rules)}".encode("utf-8", "surrogatepass"))

    def get(self, path: str, key: str) -> Checked | None:
        """The answer, if it still holds."""
        entry = self._entries.get(os.path.abspath(path))
        if entry is None or entry.key != key:
            return None
        if any(self._hash(other) != was for other, was in entry.relied):
            return None
        try:
            return msgspec.msgpack.decode(entry.answer, type=Checked)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None

    def put(self, path: str, key: str, answer: Checked) -> None:
        """Keep an answer."""
        relied = [(os.path.abspath(other), was) for other, was in answer.relied]
        with contextlib.suppress(UnicodeEncodeError):  # a path that is no text
            self._entries[os.path.abspath(path)] = Entry(key, relied, msgspec.Raw(msgspec.msgpack.encode(answer)))
            self.changed = True

    def _hash(self, path: str) -> str:
        if path not in self._hashes:
            try:
                now = still(self._steps, path)
                self._hashes[path] = digest(regular(path)) if now is None else now
            except OSError:
                self._hashes[path] = ""
        return self._hashes[path]

    def save(self) -> None:
        """Write it back, if there is anything new."""
        if not self.changed:
            return
        with contextlib.suppress(OSError, UserError, UnicodeEncodeError):
            entries = dict(list(self._entries.items())[-LARGEST:])
            body = msgspec.msgpack.encode(Kept(entries, self._steps.known))
            files.private(self.path.parent)
            files.write(self.path, digest(body).encode() + body)
            for stale in self._stale():
                stale.unlink(missing_ok=True)

    def _stale(self) -> Iterator[Path]:
        old = time.time() - KEEP
        yield from (p for p in self.path.parent.glob("*.msgpack") if p.stat().st_mtime < old)
