"""What a run did to files is taken back: each path that its journal names is as it was, compared with what stands there now.

Nothing here depends on what the run did in between, or whether that failed. It may be ended at any moment and done again.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from syncscope.verify import copying
from syncscope.verify.journal import KEPT
from syncscope.verify.standing import Standing, dress, look

OWNER = stat.S_IRWXU
LEFT = ".left-by-verify"  # ends the name of what stood in the way of a file that was there before


@dataclass
class Remains:
    """What is not as it was: made to prepare, too large for a copy, left in a folder of a run's, not to be brought back."""

    stays: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def __or__(self, other: Remains) -> Remains:
        """Both, each path once."""
        mine, others = vars(self), vars(other)
        return Remains(**{name: list(dict.fromkeys(mine[name] + others[name])) for name in mine})

    def told(self) -> Iterator[tuple[str, str]]:
        """Each path, and why."""
        for path in self.stays:
            yield path, "the first run made it before its first step, as it may fetch a data set: it stays"
        for path in self.changed:
            yield path, "the program changed it in place, and it is too large for a copy: it stays so"
        for path in self.left:
            yield path, "of what lies there nobody said that a run made it: it may be yours, and stays"
        for path in self.lost:
            yield path, f"it could not be brought back; what is left of it lies in a folder {KEPT}* of one above"


def undo(journal: Path) -> Remains:
    """Takes back what a journal says; what it could not."""
    return _Undo(journal).all() if journal.is_file() else Remains()


class _Undo:
    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._was: dict[str, Standing] = {}  # by path: the first time that somebody looked, nobody had changed it
        # by inode, which stays that file's as long as we have a name of it
        self._first: dict[tuple[int, int], Standing] = {}
        self._copies: dict[tuple[int, int], str] = {}  # by inode
        self._large: dict[tuple[int, int], tuple[str, int]] = {}
        self._asides: list[str] = []
        self._prepared: set[str] = set()
        self._remains = Remains()
        for line in journal.read_bytes().splitlines():
            with suppress(ValueError):  # the last, which is not whole: what it says was not done
                self._read(json.loads(line))

    def _read(self, said: dict[str, Any]) -> None:
        if "aside" in said:
            self._asides.append(said["aside"])
        elif "path" in said:
            self._was.setdefault(said["path"], said)
            if "name" in said:  # of a file under two names, the second may be looked at when the first has been used
                self._first.setdefault((said["inode"][0], said["inode"][1]), said)
        elif "stays" in said:
            self._prepared.add(said["stays"])
        elif "large" in said:
            self._large.setdefault((said["inode"][0], said["inode"][1]), (said["large"], said["time"]))
        else:
            self._copies.setdefault((said["inode"][0], said["inode"][1]), said["copy"])

    def all(self) -> Remains:
        """In the order in which one thing needs another."""
        for path in self._of("folder"):
            _open_up(path)  # where the program has forbidden that
        for path in reversed(self._of("absent")):
            self._try(self._remove, path)
        for path in self._of("folder"):
            self._try(self._make, path)
        for path in self._of("file", "link", "other"):
            self._try(self._bring_back, path)
        if not self._remains.lost:
            for aside in self._asides:
                _remove_all(aside)
        for path in self._of("file", "link", "other"):
            self._try(self._dress, path)
        for path in reversed(self._of("folder")):
            self._try(self._dress, path)
        there = sorted(path for path in self._prepared if os.path.lexists(path))
        self._remains.stays = [path for path in there if os.path.dirname(path) not in there]
        if not self._remains.lost:
            self._journal.unlink()
        return self._remains

    def _of(self, *kinds: str) -> list[str]:
        """The paths where such things stood, folders before what lies in them."""
        return sorted(path for path, was in self._was.items() if was["kind"] in kinds)

    def _try(self, do: Any, path: str) -> None:
        try:
            if path not in self._remains.lost:
                do(path, self._was[path])
        except OSError:
            self._remains.lost.append(path)

    def _remove(self, path: str, _: Standing) -> None:
        if not _leads_there(path) or not os.path.lexists(path):
            return
        if os.path.isdir(path) and not os.path.islink(path):
            try:
                _open_up(path)
                os.rmdir(path)
            except OSError:  # something is in it that nobody told of: it may be the user's
                if path not in self._prepared:
                    self._remains.left.append(path)
        else:
            os.unlink(path)

    def _make(self, path: str, _: Standing) -> None:
        if not _leads_there(path):
            raise NotADirectoryError(path)
        if os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path)):
            os.unlink(path)  # what was made in its place, or has another name besides
        if not os.path.lexists(path):
            os.mkdir(path, OWNER)

    def _bring_back(self, path: str, was: Standing) -> None:
        if not _leads_there(path):
            raise NotADirectoryError(path)
        now, name, inode = look(path), was.get("name", ""), (*was.get("inode", ()),)
        if now["kind"] == "folder":
            self._clear(path)
        if was["kind"] == "link":
            if (now["kind"], now.get("target")) != ("link", was["target"]):
                self._clear(path)
                os.symlink(was["target"], path)
            return
        same = now["kind"] == was["kind"] and now["inode"] == was["inode"]
        held = name if os.path.lexists(name) else path if same else ""
        copy = was.get("copy") or self._copies.get(inode, "")
        if held and was["kind"] == "file":
            self._fill(held, copy, inode)
        if held and held != path and not same:
            os.rename(held, path)
        elif not held and os.path.exists(copy):
            self._clear(path)
            os.rename(copy, path) if _on_one_disk(copy, path) else copying.copy(copy, path)
        elif not held and not (was["kind"] == now["kind"] == "file" and was["size"] == now["size"]):
            raise FileNotFoundError(path)  # else it was brought back before, and we were ended then

    def _fill(self, path: str, copy: str, inode: tuple[int, int]) -> None:
        """The bytes, into the file itself: it may have more names than those that we know."""
        if inode in self._large:
            told, time = self._large[inode]
            if os.stat(path).st_mtime_ns != time:
                self._remains.changed.append(told)
        elif os.path.exists(copy):
            if not os.access(path, os.R_OK | os.W_OK):
                os.chmod(path, 0o600)
            if not copying.alike(path, copy):
                with open(copy, "rb") as old, open(path, "r+b") as new:
                    copying.pour(old.fileno(), new.fileno())

    def _clear(self, path: str) -> None:
        """Makes room for what was there."""
        if os.path.isdir(path) and not os.path.islink(path):
            try:
                os.rmdir(path)
            except OSError:
                os.rename(path, path + LEFT)
                self._remains.left.append(path + LEFT)
        elif os.path.lexists(path):
            os.unlink(path)

    def _dress(self, path: str, was: Standing) -> None:
        if "name" in was:
            was = self._first[was["inode"][0], was["inode"][1]]
        if path in self._remains.changed:
            was = was | {"times": [was["times"][0], os.stat(path).st_mtime_ns]}
        with suppress(PermissionError):  # of folders that are not ours to change
            dress(path, was)


def _leads_there(path: str) -> bool:
    """Whether the folder is one by that name, and no link has taken its place: then it is another that lies behind."""
    return os.path.realpath(os.path.dirname(path)) == os.path.dirname(path)


def _open_up(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path) and not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        with suppress(OSError):
            os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) | OWNER)


def _on_one_disk(one: str, other: str) -> bool:
    return os.stat(one).st_dev == os.stat(os.path.dirname(other)).st_dev


def _remove_all(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
