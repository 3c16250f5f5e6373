"""What a run writes is taken back when it is over: its checkpoints and logs are as many as the runs, and were others before.

Python tells of every file that is opened for writing, renamed or removed (`sys.addaudithook`) before it is done. What stood
there is kept in a hidden folder of the same file system, away from where the program looks for checkpoints and removes old
ones; what is made is noted, both in a journal: a run is often ended in the middle. What stays is what lies in folders of
caches, and what the first run makes before its first step: a data set that it fetches.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from syncscope.tracers.hooks.patches import beats

KEPT = ".before-verify-"  # begins the name of a folder for what stood there
LARGEST = 1 << 28  # bytes of a file that is copied because it is changed in place; of a larger one it is said
CACHES = "XDG_CACHE_HOME TORCH_HOME HF_HOME TRITON_CACHE_DIR CUDA_CACHE_PATH POCL_CACHE_DIR SYNCSCOPE_CACHE_DIR"
SAVERS = {"torch": ("save", 1, "f"), "safetensors.torch": ("save_file", 1, "filename")}  # write past Python; the path
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Journal:
    """What a run changes of files, as it does; `undo` reads it. `preparing` says that what is made now is to stay."""

    def __init__(self, path: Path, preparing: Callable[[], bool]) -> None:
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._preparing = preparing
        self._number = itertools.count()
        self._known: set[str] = set()
        self._folders: set[str] = set()  # that it has made
        self._aside: dict[str, str] = {}  # by the folder in which it lies: where files are kept
        self._busy = False
        self._home = _with_end(os.path.realpath("."))
        named = (os.environ.get(name, "") for name in CACHES.split())
        own = (path.parent, *(Path.home() / name for name in (".cache", ".triton", ".nv")))
        folders: tuple[str | Path, ...] = (tempfile.gettempdir(), *filter(None, named), *own)
        self._elsewhere = tuple(_with_end(os.path.realpath(folder)) for folder in folders)
        self._own = _with_end(os.path.realpath(path.parent))

    def listen(self) -> None:
        """From now on, until the process ends."""
        sys.addaudithook(self._heard)
        for module in SAVERS:
            beats.when_imported(module, self._hear)

    def _hear(self, module: ModuleType) -> None:
        function, at, name = SAVERS[module.__name__]
        save: Callable[..., Any] = getattr(module, function)

        @functools.wraps(save)
        def saving(*args: Any, **kwargs: Any) -> Any:
            self.saved(args[at] if len(args) > at else kwargs.get(name))
            return save(*args, **kwargs)

        beats.replace(module, function, saving)

    def _heard(self, event: str, args: tuple[Any, ...]) -> None:
        heard = _EVENTS.get(event)
        if heard is None or self._busy:
            return
        self._busy = True
        try:
            heard(self, *args)
        except (OSError, ValueError, TypeError):  # what cannot be kept is the program's to write all the same
            pass
        finally:
            self._busy = False

    def opened(self, path: Any, mode: Any, flags: Any) -> None:
        """A file is about to be opened."""
        if isinstance(flags, int) and flags & WRITING and not isinstance(path, int):
            anew = flags & os.O_TRUNC and flags & os.O_CREAT
            self._changes(os.path.realpath(os.fsdecode(path)), os.rename if anew else _copied)

    def saved(self, path: Any, *_: Any) -> None:
        """A file is about to be written by something that Python does not hear of."""
        if isinstance(path, (str, bytes, os.PathLike)):
            self._heard("open", (path, "w", os.O_WRONLY | os.O_CREAT | os.O_TRUNC))

    def renamed(self, old: Any, new: Any, of_old: int = -1, of_new: int = -1) -> None:
        """A file or a folder is about to get another name, and to replace what has it."""
        old, new = _where(old, of_old), _where(new, of_new)
        self._changes(new, _linked)
        if os.path.isdir(old) and not os.path.islink(old):
            self._moves(old, new)
        else:
            self._changes(old, _linked)

    def named(self, path: Any, *folder: int, is_folder: bool = False) -> None:
        """A name is about to be given, or taken away."""
        path = _where(path, *folder)
        if is_folder:
            self._folders.add(path)  # which stays where something does that lies in it
        self._changes(path, _linked)

    def _moves(self, old: str, new: str) -> None:
        """A folder with all that lies in it. What then stands below either name is other than what is known of it."""
        prepared = old in self._known and self._preparing()  # a data set, unpacked under another name first
        if self._is_meant(old) and not prepared:
            self._note("moved", old, new)
            moved = _with_end(old), _with_end(new)
            self._known = {path for path in self._known if not _with_end(path).startswith(moved)}

    def tree_removed(self, path: Any, *_: Any) -> None:
        """A folder is about to be removed with all that lies in it."""
        root = os.path.realpath(os.fsdecode(path))
        if self._is_meant(root) and os.path.isdir(root):
            for folder, _folders, files in os.walk(root):
                for name in (*files, ""):
                    self._changes(os.path.join(folder, name).rstrip(os.sep), _linked, os.path.dirname(root))

    def _changes(self, path: str, keep: Callable[[str, str], object], below: str = "") -> None:
        """A path before anything is done to it: what stands there is kept, not deeper than `below`."""
        if path in self._known or KEPT in path or not self._is_meant(path):
            return
        self._known.add(path)
        if os.path.isdir(path) and not os.path.islink(path):
            self._note("folder", path)
        elif os.path.isfile(path) or os.path.islink(path):
            folder = self._beside(below or os.path.dirname(path))
            # A child of the program keeps files, too; the name is for who looks for it where nobody takes it back.
            kept = os.path.join(folder, f"{os.getpid()}-{next(self._number)}-{os.path.basename(path)[-99:]}")
            if keep is _copied and os.path.getsize(path) > LARGEST:
                self._note("large", path, os.stat(path).st_mtime_ns)
                return
            self._note("kept", path, kept)  # first: a run may end here
            keep(path, kept)
        elif not os.path.exists(path) and (path in self._folders or not self._preparing()):
            self._note("made", path)

    def _beside(self, folder: str) -> str:
        """A folder for what is kept, made where there is none: as far above as the file system goes and may be written, or
        where the program runs, so that it stays where the program removes folders."""
        device = os.stat(folder).st_dev
        while _with_end(folder) != self._home:
            above = os.path.dirname(folder)
            if above == folder or os.stat(above).st_dev != device or not os.access(above, os.W_OK):
                break
            folder = above
        if folder not in self._aside:
            self._aside[folder] = made = tempfile.mkdtemp(prefix=KEPT, dir=folder)
            self._note("made", made)
        return self._aside[folder]

    def _is_meant(self, path: str) -> bool:
        if "__pycache__" in path or path.startswith(("/dev/", "/proc/", self._own)):
            return False
        caches = max((len(folder) for folder in self._elsewhere if path.startswith(folder)), default=0)
        return not caches or (
            path.startswith(self._home) and len(self._home) >= caches
        )  # who works at home has them below

    def _note(self, *what: str | int) -> None:
        os.write(self._handle, json.dumps(what).encode() + b"\n")


_EVENTS: dict[str, Callable[..., None]] = {
    "open": Journal.opened,
    "os.mkdir": lambda journal, path, _, folder: journal.named(path, folder, is_folder=True),
    "os.rmdir": Journal.named,
    "os.remove": Journal.named,
    "os.rename": Journal.renamed,
    "os.link": lambda journal, old, new, *folders: journal.named(new, *folders),
    "os.symlink": lambda journal, old, new, *folder: journal.named(new, *folder),
    "os.truncate": lambda journal, path, _: journal.opened(path, None, os.O_WRONLY),
    "shutil.rmtree": Journal.tree_removed,
    "sqlite3.connect": lambda journal, path: journal.opened(path, None, os.O_RDWR | os.O_CREAT),
}


def _linked(path: str, kept: str) -> None:
    """Under another name, too."""
    os.link(path, kept, follow_symlinks=False)


def _copied(path: str, kept: str) -> None:
    """As it is now."""
    shutil.copy2(path, kept)


def _where(path: Any, *folder: int) -> str:
    """A name, with the links of the folder resolved in which it stands; the last number is that of an open folder, or -1."""
    named: str = os.fsdecode(path)
    if folder and folder[-1] >= 0:
        named = os.path.join(os.readlink(f"/proc/self/fd/{folder[-1]}"), named)
    above, name = os.path.split(os.path.abspath(named))
    return os.path.join(os.path.realpath(above), name)


def _with_end(folder: str) -> str:
    return folder.rstrip(os.sep) + os.sep


def undo(path: Path) -> list[str]:
    """Takes back what a journal says, the last first; the files that stay changed, being too large for a copy."""
    stay: list[str] = []
    if not path.is_file():
        return stay
    for line in reversed(path.read_bytes().splitlines()):
        with suppress(OSError, ValueError):
            what, changed, *kept = json.loads(line)
            if what == "folder":
                os.makedirs(changed, exist_ok=True)
            elif what == "kept":
                if os.path.lexists(kept[0]):
                    os.makedirs(os.path.dirname(changed), exist_ok=True)
                    os.replace(kept[0], changed)
            elif what == "large":
                if os.stat(changed).st_mtime_ns != kept[0]:
                    stay.append(changed)
            elif what == "moved":
                if not os.path.lexists(changed):
                    os.rename(kept[0], changed)
            elif os.path.isdir(changed):
                os.rmdir(changed)  # where something is left in it that nobody told of, it stays
            else:
                os.unlink(changed)
    path.unlink()
    return stay
