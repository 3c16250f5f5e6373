"""What a program says and writes while its steps are rehearsed, put aside: nobody reads it, and no file keeps it.

Undone is what the thread that trains does to files, as Python tells of it, and what anybody adds to files that are open.
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

from syncscope.verify import audited
from syncscope.verify.journal import Journal
from syncscope.verify.undo import Remains, undo

OUTPUTS = (1, 2)


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
        audited.listen(Journal(self._journal, lambda: False, hears_all=False), self._hears)
        self._on = True

    def say(self, line: str) -> None:
        """A line to the program's standard error, as it was."""
        with suppress(OSError):
            os.write(self._outputs.get(2, 2), f"{line}\n".encode())

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


def _flush() -> None:
    """What Python's files hold back goes where it belongs."""
    for one in gc.get_objects():
        if issubclass(
            type(one), io.TextIOWrapper | io.BufferedWriter
        ):  # by its type: what stands in for others may wake up
            with suppress(OSError, ValueError):
                if not one.closed and one.writable():
                    one.flush()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _open_files() -> dict[int, tuple[int, int, int]]:
    """Regular files that are open to be written: inode, size and place, by descriptor."""
    found: dict[int, tuple[int, int, int]] = {}
    folder = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"
    for name in os.listdir(folder):
        number = int(name)
        with suppress(OSError):
            told = os.fstat(number)
            writes = fcntl.fcntl(number, fcntl.F_GETFL) & (os.O_WRONLY | os.O_RDWR)
            if number not in OUTPUTS and writes and stat.S_ISREG(told.st_mode):
                found[number] = told.st_ino, told.st_size, os.lseek(number, 0, os.SEEK_CUR)
    return found
