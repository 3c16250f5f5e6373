"""The recordings below a logdir: found, read with care, concluded from, and kept for the next who asks."""

from __future__ import annotations

import gzip
import json
import os
import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from syncscope.errors import UserError
from syncscope.tensorboard import kept_page
from syncscope.tensorboard.kept_page import figures

ENDINGS = (".pt.trace.json", ".pt.trace.json.gz")
PAGE = ".page.json.gz"
FRESH = 10.0  # s for which a look at the folders holds
MOST = 1 << 30  # bytes of a recording, unpacked: whoever reaches the server may ask for any
MOST_RUNS = 2_000
KEPT = 4  # pages in memory


@dataclass(frozen=True, slots=True)
class Found:
    """A recording: its name for the user, the file, and what it was like when it was found."""

    run: str
    path: Path
    time: float
    size: int


class Recordings:
    """What lies below a folder. Every answer is JSON values, or packed JSON; what goes wrong is an answer, too: its `error` and
    a `hint`."""

    def __init__(self, logdir: str | None) -> None:
        self._root = os.path.realpath(logdir) if logdir and os.path.isdir(logdir) else None
        self._lock = threading.Lock()  # one recording at a time: each may take a gigabyte
        self._looked = -FRESH
        self._found: dict[str, Found] = {}
        self._pages: OrderedDict[tuple[str, float, int], bytes] = OrderedDict()
        self._summaries: dict[tuple[str, float, int], dict[str, Any]] = {}

    def any(self) -> bool:
        """Whether there is any."""
        return bool(self.found())

    def found(self) -> dict[str, Found]:
        """The recordings by name, the newest first."""
        if self._root is not None and time.monotonic() - self._looked > FRESH:
            newest = sorted(_below(self._root), key=lambda one: -one.time)[:MOST_RUNS]
            self._found = {one.run: one for one in newest}
            self._looked = time.monotonic()
        return self._found

    def listed(self) -> list[dict[str, Any]]:
        """What there is to choose from."""
        return [{"run": one.run, "time": one.time, "bytes": one.size} for one in self.found().values()]

    def page(self, run: str) -> Any:
        """All that the page of a recording shows, packed."""
        return self._told(run, self._page)

    def summary(self, run: str) -> Any:
        """The few figures of a recording that stand in the list of runs."""
        return self._told(run, self._summary)

    def _told(self, run: str, give: Callable[[Found], Any]) -> Any:
        one = self.found().get(run)
        if one is None:
            return {"error": "there is no such recording below the logdir", "hint": "choose one of the list"}
        try:
            with self._lock:
                return give(one)
        except UserError as error:
            return {"error": error.message.replace(str(one.path), one.run), "hint": error.hint}
        except OSError as error:
            return {"error": f"{one.run} cannot be read: {error.strerror}", "hint": "choose another"}
        except MemoryError:
            return {"error": "there is not enough memory for this recording", "hint": "record fewer steps"}
        except (
            Exception
        ) as error:  # a bug of ours, or a file that nobody thought of: the other runs are to be seen all the same
            return {
                "error": f"this recording cannot be shown: {type(error).__name__}",
                "hint": "syncscope report says more of it",
            }

    def _page(self, one: Found) -> bytes:
        key = (one.run, one.time, one.size)
        if key not in self._pages:
            self._pages[key] = self._kept(one) or self._concluded(one)
            while len(self._pages) > KEPT:
                self._pages.popitem(last=False)
        self._pages.move_to_end(key)
        return self._pages[key]

    def _summary(self, one: Found) -> dict[str, Any]:
        key = (one.run, one.time, one.size)
        if key not in self._summaries:
            shown = figures(self._page(one))
            self._summaries[key] = {
                "step_ms": shown.step_ms,
                "reads": shown.syncs,
                "recorded": shown.recorded,
                "saving_ms": shown.total_saving_ms,
                "device_busy": shown.device_busy,
                "verdict": shown.verdict,
            }
        return self._summaries[key]

    def _kept(self, one: Found) -> bytes | None:
        """The page as `syncscope report --format tensorboard` wrote it, with the source as it was then; None without a whole
        one."""
        name = next(
            one.path.name.removesuffix(ending) for ending in reversed(ENDINGS) if one.path.name.endswith(ending)
        )
        try:
            with self._open(one.path.with_name(name + PAGE)) as file:
                packed = file.read(kept_page.MOST)
            figures(packed)
        except (OSError, UserError):
            return None
        return packed

    def _concluded(self, one: Found) -> bytes:
        """The page from the recording alone: no source is opened, whatever it names."""
        from syncscope import api
        from syncscope.exporters import html

        with self._open(one.path) as file:
            report = api.report(file, name=one.run, sources=False, most=MOST)
        shown, events = html.parts(api.with_work(report))
        shown["page"]["folder"] = ""
        return gzip.compress(json.dumps({"shown": shown, "events": events}, allow_nan=False).encode(), 4)

    def _open(self, path: Path) -> BinaryIO:
        """A regular file that really lies below the logdir, at the moment at which it is opened."""
        file = open(path, "rb", opener=self._step_by_step)  # noqa: SIM115  # the caller's
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode) or not is_below(path, self._root):
            file.close()
            raise UserError("this is no file below the logdir", "choose one of the list")
        return file

    def _step_by_step(self, path: str, flags: int) -> int:
        """Open what is there and no link to elsewhere, each folder of the way from the one before: whoever may write below the
        logdir may swap a folder for a link at any moment. A pipe does not keep us waiting."""
        last = flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
        if self._root is None or os.open not in os.supports_dir_fd:
            return os.open(path, last)
        *folders, name = os.path.relpath(path, self._root).split(os.sep)
        at = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for folder in folders:
                below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
                os.close(at)
                at = below
            return os.open(name, last, dir_fd=at)
        finally:
            os.close(at)


def _below(root: str) -> Iterator[Found]:
    """The recordings below a folder. Links are not followed, neither to folders nor to files."""
    for folder, below, names in os.walk(root, followlinks=False):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in names:
            if not name.endswith(ENDINGS) or name.startswith("."):
                continue
            path = Path(folder, name)
            try:
                told = path.lstat()
            except OSError:
                continue
            if stat.S_ISREG(told.st_mode):
                yield Found(path.relative_to(root).as_posix(), path, told.st_mtime, told.st_size)


def is_below(path: Path, root: str | None) -> bool:
    """Whether a file really lies below a folder (one without links)."""
    return root is not None and os.path.commonpath((os.path.realpath(path), root)) == root
