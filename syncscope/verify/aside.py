"""What a program says and writes while its steps are rehearsed, put aside: nobody reads it, and no file keeps it.

Undone is what the thread that trains does to files, as Python tells of it, and what anybody adds at the end of files that are
open. A database is left as it is: cut to its length it would be damaged.
"""

from __future__ import annotations

import fcntl
import gc
import io
import os
import shutil
import stat
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from syncscope.verify import audited
from syncscope.verify.journal import Journal
from syncscope.verify.undo import Remains, undo

OUTPUTS = (1, 2)
DATABASE = b"SQLite format 3\0"  # how one begins


class Nowhere(io.TextIOBase):
    """A stream that keeps nothing."""

    def write(self, text: str) -> int:
        """Nothing, and all is well."""
        return len(text)


class Aside:
    """Inside, all goes aside. `folder` is one of ours; `remains` is what could not be undone."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="syncscope-try-"))
        self.remains = Remains()
        self._journal = self.folder / "journal"
        self._thread = threading.get_ident()
        self._on = False
        self._process = os.getpid()
        self._outputs: dict[int, int] = {}
        self._streams: dict[str, Any] = {}  # of Python, that go elsewhere: into a notebook, into a test
        self._sizes: dict[int, tuple[int, int, int]] = {}

    def begin(self) -> None:
        """From now on."""
        _flush()
        self._sizes = _open_files()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for number in OUTPUTS:
            with suppress(OSError):  # it may be closed
                self._outputs[number] = os.dup(number)
                os.dup2(nowhere, number)
        os.close(nowhere)
        for name in ("stdout", "stderr"):
            if _number_of(stream := getattr(sys, name)) not in OUTPUTS:
                self._streams[name] = stream
                setattr(sys, name, Nowhere())
        audited.listen(Journal(self._journal, lambda: False, hears_all=False), self._hears)
        self._on = True

    def end(self) -> None:
        """What was done since is undone."""
        if not self._on:
            return
        self._on = False
        _flush()
        for number, kept in self._outputs.items():
            os.dup2(kept, number)
            os.close(kept)
        self._outputs.clear()
        for name, stream in self._streams.items():
            setattr(sys, name, stream)
        self._streams.clear()
        for number, (file, size, at) in self._sizes.items():
            with suppress(OSError):
                now = os.fstat(number)
                if now.st_ino == file and now.st_size > size:
                    os.ftruncate(number, size)
                    os.lseek(number, at, os.SEEK_SET)
        self.remains = undo(self._journal)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _hears(self) -> bool:
        return self._on and threading.get_ident() == self._thread and os.getpid() == self._process


def _number_of(stream: Any) -> int | None:
    """Of the descriptor behind it."""
    with suppress(OSError, ValueError, AttributeError):
        return int(stream.fileno())
    return None


def _flush() -> None:
    """What Python's files hold back goes where it belongs."""
    for one in gc.get_objects():
        # by its type: what stands in for others may wake up
        if issubclass(type(one), io.TextIOWrapper | io.BufferedWriter):
            with suppress(OSError, ValueError):
                if not one.closed and one.writable():
                    one.flush()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _open_files() -> dict[int, tuple[int, int, int]]:
    """Regular files that are open and written at their end: inode, size and place, by descriptor."""
    found: dict[int, tuple[int, int, int]] = {}
    folder = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"
    for name in os.listdir(folder):
        number = int(name)
        with suppress(OSError):
            told, how = os.fstat(number), fcntl.fcntl(number, fcntl.F_GETFL)
            writes = how & (os.O_WRONLY | os.O_RDWR) and stat.S_ISREG(told.st_mode)
            if number not in OUTPUTS and writes and not _is_database(f"{folder}/{name}"):
                at = os.lseek(number, 0, os.SEEK_CUR)
                if at == told.st_size or how & os.O_APPEND:
                    found[number] = told.st_ino, told.st_size, at
    return found


def _is_database(path: str) -> bool:
    with suppress(OSError), open(path, "rb") as file:
        return file.read(len(DATABASE)) == DATABASE
    return False
