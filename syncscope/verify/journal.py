"""What stands at every path before a run changes anything there, kept so that `undo` can bring it back.

Whoever hears of a change (`audited`, `notified`) tells it here before it is made. Of each path what stood there is noted once,
in a line of its own, and only then is the change made: a run may be ended at any moment. Of a file there is besides

- another name for it, in a folder of ours on the same file system. So the file itself comes back, with all its other names,
  however it was renamed, replaced or removed;
- a copy of its bytes, before *they* are changed under whatever name. A large file whose bytes are thrown away as it is opened
  needs none: the name is given to an empty file first.

What cannot be kept is not to be changed: these functions raise OSError then.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from syncscope.verify import copying
from syncscope.verify.caches import Caches
from syncscope.verify.standing import Standing, look

KEPT = ".before-verify-"  # begins the name of a folder for what is kept
LARGEST = 1 << 30  # bytes of a file that is copied because it is changed in place; of a larger one it is said
EMPTIED = 1 << 24  # bytes from which a file whose bytes are thrown away is not copied
AT_ONCE = 1 << 26  # bytes of a file that is copied as soon as it gets another name, where not every change is heard
MOST_AT_ONCE = 1 << 30  # of all those
CHANGING = os.O_WRONLY | os.O_RDWR | os.O_TRUNC
WRITING = CHANGING | os.O_CREAT | os.O_APPEND
Inode = tuple[int, int]


class Journal:
    """Of one run, or of those that run side by side, in as many processes as they like. `preparing` says that what is made now
    is to stay. `hears_all`: nobody changes a file without our being told."""

    def __init__(self, path: Path, preparing: Callable[[], bool], hears_all: bool) -> None:
        self._path = path
        self._preparing, self._hears_all = preparing, hears_all
        self._caches = Caches(path.parent)
        self._number = itertools.count()
        self._known: set[str] = set()
        self._prepared: set[str] = set()  # made before the first step
        self._held: dict[Inode, str] = {}  # of which there is another name, in this folder of ours
        self._copied: set[Inode] = set()
        self._at_once = 0  # bytes that were copied though nobody had changed them yet
        self._aside: dict[str, str] = {}  # our folder in each folder where there is one
        self._beside: dict[str, str] = {}  # our folder for the files of each folder

    def opened(self, path: str, flags: int) -> None:
        """A file (links resolved) is about to be opened with these flags."""
        if not flags & (CHANGING | os.O_CREAT):
            return
        try:
            told = os.stat(path)
        except FileNotFoundError:
            if flags & os.O_CREAT:
                self.named(path)
            return
        if not stat.S_ISREG(told.st_mode) or not flags & CHANGING or (flags & os.O_CREAT and flags & os.O_EXCL):
            return
        self._keep(path)
        self._change(path, told, bool(flags & os.O_TRUNC))

    def named(self, path: str, *, is_folder: bool = False, stays: bool = True) -> None:
        """A name is about to be given, or taken away, or given to something else. `stays`: if it is made to prepare."""
        self._keep(os.path.dirname(path))  # whose time changes
        self._keep(path, is_folder, stays)

    def renamed(self, old: str, new: str, exchanged: bool = False) -> None:
        """A file or a folder is about to get another name, and to replace what has it."""
        ours = self._is_prepared(old)  # a data set, unpacked under another name first
        self.named(old)
        self.named(new, stays=ours)
        self._moves(old, new, ours)
        if exchanged:
            self._moves(new, old, ours)

    def linked(self, old: str, new: str) -> None:
        """A file is about to get one more name."""
        self._keep(os.path.realpath(old))
        self._keep(old)
        self.named(new, stays=self._is_prepared(old))

    def dressed(self, path: str) -> None:
        """The mode, owner, times or attributes of something are about to be changed."""
        self._keep(path)

    def truncated(self, path: str) -> None:
        """A file (links resolved) is about to be made shorter or longer."""
        self.opened(path, os.O_WRONLY)

    def _moves(self, old: str, new: str, stays: bool) -> None:
        """All that lies in a folder gets another name with it."""
        if not os.path.isdir(old) or os.path.islink(old):
            return
        for above, folders, files in os.walk(old, onerror=_raise):
            for name in (*folders, *files):
                path = os.path.join(above, name)
                self._keep(path)
                self._keep(new + path[len(old) :], stays=stays)

    def _keep(self, path: str, is_folder: bool = False, stays: bool = True) -> None:
        """Whatever stands at a path, once."""
        if path in self._known or KEPT in path or self._caches.hold(path):
            return
        above = os.path.dirname(path)
        # below a link nothing lies by this name, until a folder that is moved takes its place
        was = look(path) if os.path.realpath(above) == above else Standing(kind="absent")
        if was["kind"] == "absent":
            if stays and self._preparing():
                self._prepared.add(path)
                self._note({"stays": path})
            if is_folder or path not in self._prepared:  # a folder stays where something does that lies in it
                self._note({"path": path} | was)
        elif not self._is_prepared(path):
            if was["kind"] in ("file", "other"):
                was |= self._kept(path, was)
            self._note({"path": path} | was)
            if was.get("name"):
                self._held[was["inode"][0], was["inode"][1]] = os.path.dirname(was["name"])
            if was["kind"] == "file" and not self._hears_all:
                self._copy_at_once(path, was)
        self._known.add(path)

    def _is_prepared(self, path: str) -> bool:
        """Whether this, or a folder that holds it, was made before the first step."""
        while self._prepared and path not in self._prepared:
            above = os.path.dirname(path)
            if above == path:
                return False
            path = above
        return bool(self._prepared)

    def _kept(self, path: str, was: Standing) -> dict[str, str]:
        """Another name for a file; a copy where it can have none, which then is all there is."""
        folder = os.path.dirname(path)
        for above in [self._beside[folder]] if folder in self._beside else self._folders(folder):
            with suppress(OSError):  # another mount of the same disk, a quota, a file of somebody else
                aside = above if folder in self._beside else self._aside_in(above)
                name = self._new(aside)
                os.link(path, name, follow_symlinks=False)
                self._beside[folder] = aside
                return {"name": name}
        if was["kind"] != "file":
            return {}
        copy = self._new(str(self._path.parent))
        self._copy(path, copy)
        return {"copy": copy}

    def _folders(self, folder: str) -> list[str]:
        """Where a folder of ours may lie: as far above as the file system goes, so that no program comes across it, but in the
        root only if it must."""
        found, device = [], os.stat(folder).st_dev
        while os.stat(folder).st_dev == device:
            if os.access(folder, os.W_OK | os.X_OK):
                found.append(folder)
            above = os.path.dirname(folder)
            if above == folder:
                break
            folder = above
        return sorted(found, key=lambda one: (one == os.sep, len(one)))

    def _aside_in(self, folder: str) -> str:
        if folder not in self._aside:
            self._keep(folder)
            aside = os.path.join(folder, KEPT + os.urandom(4).hex())
            self._note({"aside": aside})  # first: the run may end here
            os.mkdir(aside, 0o700)
            self._aside[folder] = aside
        return self._aside[folder]

    def _new(self, folder: str) -> str:
        return os.path.join(folder, f"{os.getpid()}-{next(self._number)}")

    def _change(self, path: str, told: os.stat_result, thrown_away: bool) -> None:
        """The bytes of a file that we hold are about to be changed, under whatever name."""
        inode = told.st_dev, told.st_ino
        if inode not in self._held or inode in self._copied:
            return
        used = getattr(told, "st_blocks", 0) * 512 or told.st_size
        if thrown_away and used > EMPTIED and os.access(path, os.W_OK):
            self._keep(os.path.dirname(path))
            os.unlink(path)
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with suppress(PermissionError):
                os.fchown(made, told.st_uid, told.st_gid)
            os.fchmod(made, stat.S_IMODE(told.st_mode))
            os.close(made)
            return
        copy = self._new(self._held[inode])
        if copying.clone(path, copy):
            pass
        elif used > LARGEST:
            self._note({"large": path, "inode": inode, "time": told.st_mtime_ns})
            self._copied.add(inode)
            return
        else:
            self._copy(path, copy)
        self._note({"inode": inode, "copy": copy})
        self._copied.add(inode)

    def _copy_at_once(self, path: str, was: Standing) -> None:
        """Some library may write to it under its new name, and nobody would tell us."""
        fits = was["blocks"] <= min(AT_ONCE, LARGEST) and self._at_once + was["blocks"] <= MOST_AT_ONCE
        if fits and os.access(path, os.R_OK):
            self._at_once += was["blocks"]
            self._change(path, os.lstat(path), thrown_away=False)

    def _copy(self, path: str, copy: str) -> None:
        try:
            copying.copy(path, copy)
        except OSError as error:
            why = f"verify can keep no copy of it to take this back afterwards: {error.strerror}"
            raise OSError(error.errno or errno.EIO, why, path) from None

    def _note(self, what: Mapping[str, object]) -> None:
        line = json.dumps(what).encode() + b"\n"
        journal = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)  # anew: daemons close what is open
        try:
            os.write(journal, line)
        finally:
            os.close(journal)


def where(path: str) -> str:
    """A path with the links of the folder resolved in which its last name stands, and not that one."""
    above, name = os.path.split(path.rstrip(os.sep) or os.sep)
    if name in ("", os.curdir, os.pardir):
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(above), name)


def _raise(error: OSError) -> None:
    raise error
