"""`watch`: which lines read and how often, without device times: cheap enough to stay in production."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass

from syncscope.model.source import Place
from syncscope.tracers import places
from syncscope.tracers.guard import dry_if, has_device
from syncscope.tracers.hooks import listening, reads
from syncscope.tracers.hooks.listeners import Listener, Record

NO_DEVICE = (
    "nothing could be counted: no tensor here lives on a device; watch(dry=True) takes those of the CPU for a device's"
)


@dataclass(frozen=True, slots=True)
class WatchedLine:
    """Reads of one op at one place: how many, and how long they held the host, ns; 0 in a dry run, where none waits."""

    op: str
    place: Place | None
    column: int
    count: int
    blocked: int
    library: str = ""

    def __str__(self) -> str:
        inside = f" (in {self.library})" if self.library else ""
        where = self.place or "unknown line"
        times = "once" if self.count == 1 else f"{self.count} times"
        held = f", host blocked for {self.blocked / 1e6:.3g} ms" if self.blocked else ""
        return f"{where}: {self.op}{inside}, {times}{held}"


class Watch:
    """Counts reads by line. Reading it is safe at any time, also from another thread.

    `judges` is whether any tensor of the process can make it wait: one of a device, or in a `dry` run of the CPU.
    """

    def __init__(self, judges: bool, dry: bool) -> None:
        self._judges, self._dry = judges, dry
        self._beside: tuple[str, ...] = ()  # parts of the names of files whose reads are none of the program's
        self._totals: dict[tuple[str, places.Seen], list[int]] = {}
        self._lock = threading.Lock()
        self._thread = threading.get_native_id()
        self._everywhere = False

    def leave_out(self, files: tuple[str, ...]) -> None:
        """Counts nothing from now on that files read in whose names one of these stands."""
        self._beside = files

    def take_all(self) -> None:
        """Counts from now on the reads of every thread and task of the process."""
        self._everywhere = True

    def is_meant(self, record: Record) -> bool:
        """Whether a read is of the thread and task that watch, or of a thread of autograd that works for them; or of any."""
        spot = record.seen.inner or record.seen.library
        if spot is not None and any(part in spot.code.co_filename for part in self._beside):
            return False
        if self._everywhere:
            return True
        if record.thread == self._thread:
            return self in _watching.get()
        return record.thread not in {thread.native_id for thread in threading.enumerate()}

    def add(self, record: Record) -> None:
        """One more read."""
        if not self.is_meant(record):
            return
        key = (record.op, record.seen)
        with self._lock:
            total = self._totals.get(key)
            if total is None:
                total = self._totals[key] = [0, 0]
            total[0] += 1
            if not self._dry:
                total[1] += record.end - record.start

    @property
    def count(self) -> int:
        """Reads so far."""
        with self._lock:
            return sum(total[0] for total in self._totals.values())

    @property
    def lines(self) -> list[WatchedLine]:
        """The lines that read, the longest wait first; in a dry run those that read most often."""
        with self._lock:
            totals = [(op, seen, total[0], total[1]) for (op, seen), total in self._totals.items()]
        found = []
        for op, seen, count, blocked in totals:
            spot = reads.spot_of(seen)
            place, column = places.resolve(spot) if spot else (None, -1)
            library = places.short(seen.library) if seen.library and seen.user else ""
            found.append(WatchedLine(op, place, column, count, blocked, library))
        return sorted(found, key=lambda line: (-line.blocked, -line.count))

    def clear(self) -> None:
        """Forgets what was counted."""
        with self._lock:
            self._totals.clear()

    def __str__(self) -> str:
        nothing = "no line has synced" if self._judges else NO_DEVICE
        return "\n".join(map(str, self.lines)) or nothing


_watching: ContextVar[tuple[Watch, ...]] = ContextVar("syncscope watches", default=())


@contextlib.contextmanager
def watch(*, dry: bool | None = False) -> Iterator[Watch]:
    """Inside, reads are counted by line; `dry` as in `forbid_syncs`."""
    found = Watch(dry is not False or has_device(), not has_device() if dry is None else dry)
    token = _watching.set((*_watching.get(), found))
    try:
        with listening(Listener(read=found.add)), dry_if(dry):
            yield found
    finally:
        with contextlib.suppress(ValueError):  # a generator may end in another context than it began in
            _watching.reset(token)
