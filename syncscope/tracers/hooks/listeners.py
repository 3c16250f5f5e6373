"""Who is told of reads, regions and steps. The hooks look here; what is to be heard is said once, in a `Listener`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
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


class Listener(NamedTuple):
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
        # whether a tensor of the CPU is to be treated as one of a device; the dry run says so
        self.pretend: Callable[[Any], bool] | None = None
        self._sort()

    def add(self, listener: Listener) -> None:
        """From now on it is called."""
        with self._lock:
            self._all = (*self._all, listener)
            self._sort()

    def remove(self, listener: Listener) -> None:
        """It is not called any more; nothing happens where it was forgotten already."""
        with self._lock:
            self._all = tuple([one for one in self._all if one is not listener])
            self._sort()

    def forget(self) -> None:
        """In the child of a fork: they are the parent's."""
        self._lock = threading.Lock()
        self._all = ()
        self._sort()

    def _sort(self) -> None:
        """In one pass without generators: who listens for one step only comes by here twice in each."""
        reads, guards, regions, steps, modules = [], [], [], [], False
        for one in self._all:
            if one.read is not None:
                reads.append(one.read)
            if one.guard is not None:
                guards.append(one.guard)
            if one.region is not None:
                regions.append(one.region)
            if one.step is not None:
                steps.append(one.step)
            modules = modules or one.modules
        self.reads, self.guards, self.regions, self.steps = tuple(reads), tuple(guards), tuple(regions), tuple(steps)
        self.modules = modules


listeners = Listeners()
os.register_at_fork(after_in_child=listeners.forget)
