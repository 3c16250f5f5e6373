"""What a run changes of files, as Python tells of it (`sys.addaudithook`): where the kernel cannot be asked.

Not heard so is what other programs write that it starts, and what libraries write past Python; of those, a few that save
checkpoints are.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import socket
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urlsplit

from syncscope.tracers.hooks.patches import beats
from syncscope.verify.caches import SHARED_MEMORY
from syncscope.verify.journal import WRITING, Journal, where

SAVERS = {"torch": ("save", 1, "f"), "safetensors.torch": ("save_file", 1, "filename")}  # write past Python; the path
MADE = ("mkfifo", "mknod")  # of these Python does not tell
DATABASE = ("", "-journal", "-wal", "-shm")  # what SQLite makes beside one


def listen(journal: Journal, now: Callable[[], bool] = lambda: True) -> None:
    """From now on, until the process ends; `now` says whether what happens just now is to be noted."""
    ears = _Ears(journal, now)
    sys.addaudithook(ears.heard)
    for module in SAVERS:
        beats.when_imported(module, ears.saver)
    for name in MADE:
        setattr(os, name, ears.making(getattr(os, name)))
    os.open = ears.opening(os.open)
    with contextlib.suppress(ImportError):
        memory = importlib.import_module("_posixshmem")
        memory.shm_open = ears.sharing(memory.shm_open)  # type: ignore[attr-defined]


class _Ears:
    def __init__(self, journal: Journal, now: Callable[[], bool]) -> None:
        self._journal, self._now = journal, now
        self._busy = threading.local()

    def heard(self, event: str, args: tuple[Any, ...]) -> None:
        """Something is about to happen; if what stands there cannot be kept, it does not.

        Raises:
            OSError: that.
        """
        tell = _EVENTS.get(event)
        if tell is None or getattr(self._busy, "keeps", False) or not self._now():
            return
        self._busy.keeps = True  # what is done here is heard, too
        try:
            tell(self._journal, *args)
        except (TypeError, ValueError):  # Python will say so itself
            pass
        finally:
            self._busy.keeps = False

    def saver(self, module: ModuleType) -> None:
        """A library that writes past Python is there."""
        function, at, name = SAVERS[module.__name__]
        save: Callable[..., Any] = getattr(module, function)

        @functools.wraps(save)
        def saving(*args: Any, **kwargs: Any) -> Any:
            path = args[at] if len(args) > at else kwargs.get(name)
            if isinstance(path, (str, bytes, os.PathLike)):
                self.heard("open", (path, "w", os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
            return save(*args, **kwargs)

        beats.replace(module, function, saving)

    def making(self, make: Callable[..., None]) -> Callable[..., None]:
        """A name is given to a pipe or a device."""

        @functools.wraps(make)
        def made(path: Any, *args: Any, **kwargs: Any) -> None:
            self.heard("os.symlink", ("", path, kwargs.get("dir_fd", -1)))
            make(path, *args, **kwargs)

        return made

    def opening(self, opened: Callable[..., int]) -> Callable[..., int]:
        """Python tells of what is opened, but not in which folder."""

        @functools.wraps(opened)
        def opens(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            if dir_fd is not None and flags & WRITING:
                self.heard("open", (_whole(path, dir_fd), None, flags))
            return opened(path, flags, mode, dir_fd=dir_fd)

        return opens

    def sharing(self, open_: Callable[..., int]) -> Callable[..., int]:
        """Memory is shared under a name."""

        @functools.wraps(open_)
        def shared(path: Any, flags: int = 0, *args: Any, **kwargs: Any) -> int:
            self.heard("open", (SHARED_MEMORY + os.fsdecode(path).lstrip("/"), None, flags))
            return open_(path, flags, *args, **kwargs)

        return shared


def _whole(path: Any, folder: int | None = None) -> str:
    """A path as it was given, from the open folder that it is relative to; that of an open file.

    Raises:
        ValueError: it has none.
    """
    if isinstance(path, int):
        return _of_open(path)
    named = os.fsdecode(path)
    if os.path.isabs(named):
        return named
    return os.path.join(_of_open(folder) if folder is not None and folder >= 0 else os.getcwd(), named)


def _of_open(number: int) -> str:
    """The path of an open file.

    Raises:
        ValueError: it has none.
    """
    if sys.platform == "darwin":
        import fcntl

        return os.fsdecode(fcntl.fcntl(number, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    try:
        named = os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        raise ValueError(f"{number} is not open") from None
    if not named.startswith(os.sep):
        raise ValueError(named)
    return named


def _open(journal: Journal, path: Any, _: Any, flags: Any) -> None:
    if isinstance(flags, int) and flags & WRITING and not isinstance(path, int):
        journal.opened(os.path.realpath(_whole(path)), flags)


def _rename(journal: Journal, old: Any, new: Any, of_old: int = -1, of_new: int = -1) -> None:
    journal.renamed(where(_whole(old, of_old)), where(_whole(new, of_new)))


def _link(journal: Journal, old: Any, new: Any, of_old: int = -1, of_new: int = -1) -> None:
    journal.linked(where(_whole(old, of_old)), where(_whole(new, of_new)))


def _name(journal: Journal, path: Any, folder: int = -1) -> None:
    journal.named(where(_whole(path, folder)))


def _dress(journal: Journal, path: Any, folder: int = -1) -> None:
    whole = _whole(path, folder)
    journal.dressed(where(whole))
    journal.dressed(os.path.realpath(whole))


def _database(journal: Journal, path: Any) -> None:
    named = os.fsdecode(path)
    if named.startswith("file:"):
        named = unquote(urlsplit(named).path)
    if named and named != ":memory:":
        for end in DATABASE:
            journal.opened(os.path.realpath(_whole(named)) + end, os.O_RDWR | os.O_CREAT)


def _bind(journal: Journal, which: Any, address: Any) -> None:
    if which.family == getattr(socket, "AF_UNIX", None) and address and address[0] not in ("\0", 0):
        _name(journal, address)


_EVENTS: dict[str, Callable[..., None]] = {
    "open": _open,
    "os.mkdir": lambda journal, path, _, folder=-1: journal.named(where(_whole(path, folder)), is_folder=True),
    "os.rmdir": _name,
    "os.remove": _name,
    "os.rename": _rename,
    "os.link": _link,
    "os.symlink": lambda journal, old, new, folder=-1: _name(journal, new, folder),
    "os.truncate": lambda journal, path, _: journal.truncated(os.path.realpath(_whole(path))),
    "os.chmod": lambda journal, path, mode, folder=-1: _dress(journal, path, folder),
    "os.chown": lambda journal, path, user, group, folder=-1: _dress(journal, path, folder),
    "os.utime": lambda journal, path, times, ns, folder=-1: _dress(journal, path, folder),
    "os.setxattr": lambda journal, path, *_: _dress(journal, path),
    "os.removexattr": lambda journal, path, *_: _dress(journal, path),
    "os.chflags": lambda journal, path, _: _dress(journal, path),
    "socket.bind": _bind,
    "sqlite3.connect": _database,
}
