"""Who is told of reads, regions and steps. The hooks look here; what is to be heard is said once, in a `Listener`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from syncscope.tracers.places import Seen


class RowsKept(NamedTuple):
    """What a read selected: `kept` of `rows`, and whether a gradient will come back to it."""

    kept: int
    rows: int
    gradient: bool


class Record(NamedTuple):
    """One read. Times are ns of CLOCK_MONOTONIC; `operator` is what fell back to the CPU, `module` the nn.Module's path."""

    op: str
    seen: Seen
    thread: int
    start: int
    end: int
    bytes: int = -1
    operator: str = ""
    module: str = ""
    selection: RowsKept | None = None


@dataclass(frozen=True, eq=False)
class Listener:
    """What somebody wants to hear of; each is called on the thread on which it happens.

    `guard` is called before a read, and what it raises is what the user's line raises. `region` gets the name, start and end
    (ns) of each `record_function`; `step` is called after each step of the optimizer that was seen first. `modules` asks for
    the nn.Module's path with each read, which costs microseconds; `sync_debug` for the waits that only torch itself knows of.
    """

    read: Callable[[Record], None] | None = None
    guard: Callable[[str, Seen], None] | None = None
    region: Callable[[str, int, int], None] | None = None
    step: Callable[[], None] | None = None
    modules: bool = False
    sync_debug: bool = False


class Listeners:
    """All of them, by what they hear. The tuples are replaced as a whole: a thread that goes through one is not disturbed."""

    def __init__(self) -> None:
        self._all: tuple[Listener, ...] = ()
        self._lock = threading.Lock()
        self._sort()

    def add(self, listener: Listener) -> None:
        """From now on it is called."""
        with self._lock:
            self._all = (*self._all, listener)
            self._sort()

    def remove(self, listener: Listener) -> None:
        """It is not called any more; nothing happens where it was forgotten already."""
        with self._lock:
            self._all = tuple(one for one in self._all if one is not listener)
            self._sort()

    def forget(self) -> None:
        """In the child of a fork: they are the parent's."""
        self._lock = threading.Lock()
        self._all = ()
        self._sort()

    def _sort(self) -> None:
        every: tuple[Any, ...] = self._all
        self.reads: tuple[Callable[[Record], None], ...] = tuple(one.read for one in every if one.read)
        self.guards: tuple[Callable[[str, Seen], None], ...] = tuple(one.guard for one in every if one.guard)
        self.regions: tuple[Callable[[str, int, int], None], ...] = tuple(one.region for one in every if one.region)
        self.steps: tuple[Callable[[], None], ...] = tuple(one.step for one in every if one.step)
        self.modules = any(one.modules for one in every)
        # whether a tensor of the CPU is to be treated as one of a device; the dry run says so
        self.pretend: Callable[[Any], bool] | None = getattr(self, "pretend", None)


listeners = Listeners()
os.register_at_fork(after_in_child=listeners.forget)
