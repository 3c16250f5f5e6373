"""What is allocated and freed on a device, and on which line; only where it is asked for.

Our own device tells of it as it happens. CUDA and ROCm keep a history with Python's frames themselves, which is read at the
end; what is allocated in a backward pass, whose threads have no frame, gets the line that called it. Sizes are as asked for.
"""

from __future__ import annotations

import os
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from threading import get_native_id
from time import monotonic_ns
from typing import Any

from syncscope.model.memory import Allocations
from syncscope.model.source import Place
from syncscope.tracers import places
from syncscope.tracers.columns import Builder
from syncscope.tracers.hooks import methods, reads
from syncscope.tracers.hooks.patches import patches
from syncscope.tracers.places import Seen
from syncscope.tracers.python_events import PythonEvents
from syncscope.tracers.sources import Source, torch_profiler

OURS = "syncscope.kernels.memory"
# as in Allocations; the thread for the lane, the place itself
Row = tuple[int, int, int, int, int, int, int, Place | None]
ADDED = {"alloc": 1, "free_requested": -1}
HELD = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}


class Memory(Source):
    """From `start` to `stop` every allocation and every free, if the recording wants them."""

    def __init__(self) -> None:
        self._events: PythonEvents | None = None
        self._forget: tuple[Callable[[], None], ...] = ()
        self._ours: Any = None  # the allocator of our device, once it listens
        self._told: list[tuple[int, int, int, int, int, int, Seen | None]] = []
        # of each CUDA device, once it listens: bytes asked for, reserved
        self._before: list[tuple[int, int]] | None = None
        self._snapshot: list[list[dict[str, Any]]] = []
        self._since = 0  # of it, ns of CLOCK_MONOTONIC
        self._mine = False  # torch keeps it because we asked
        self._over = False  # we have had what there is for us
        self._notes: list[str] = []
        self._passes: list[tuple[int, int, Seen]] = []

    def start(self, events: PythonEvents) -> None:
        """Begins to listen to the devices that are there."""
        if not events.memory_wanted:
            return
        self._events = events
        reads.passes = []
        self._forget = patches.when_imported(OURS, self._listen), patches.when_imported("torch", self._hear)
        self.boundary()

    def boundary(self) -> None:
        """Listens to CUDA as soon as it is there."""
        if self._events is None or self._before is not None or not torch_profiler.wanted():
            return
        import torch

        stats = [torch.cuda.memory_stats(device) for device in range(torch.cuda.device_count())]
        keys = ("requested_bytes.all.current", "reserved_bytes.all.current")
        self._since = monotonic_ns()
        if not torch._C._cuda_isHistoryEnabled():  # else the program keeps it for itself, and it serves both
            torch.cuda.memory._record_memory_history(context="alloc", stacks="python")
            self._mine = True
        self._before = [(one.get(keys[0], 0), one.get(keys[1], 0)) for one in stats]

    def _hear(self, torch: Any) -> None:
        methods.hear(torch._C, "_cuda_record_memory_history", self._give_way)

    def _give_way(self, *_: Any) -> None:
        """The program begins or ends a history of its own, of which there is one: ours ends there."""
        if self._before is not None and not self._over:
            self.settle()
            self._mine, self._over = False, True
            self._notes.append("the program set torch's memory history itself: later allocations are missing")

    def _listen(self, memory: Any) -> None:
        told, frame_of, now = self._told, sys._getframe, monotonic_ns

        def tell(address: int, size: int) -> None:
            # a plan in C allocates from threads without another frame
            seen = reads.here(frame_of(0)) if size > 0 else None
            told.append((now(), address, size, memory.in_use, memory.held, get_native_id(), seen))

        self._ours, memory.told = memory, tell

    def settle(self) -> None:
        """Takes over what CUDA has kept so far."""
        if self._before is not None and not self._over:
            import torch

            self._snapshot = torch.cuda.memory._snapshot()["device_traces"]
        self._passes = sorted(reads.passes or [], key=lambda one: one[0])

    def stop(self) -> None:
        """No more."""
        if self._events is None:
            return
        for forget in self._forget:
            forget()
        if self._ours is not None:
            self._ours.told = None
        self.settle()
        self._over = True
        if self._mine:
            import torch

            torch.cuda.memory._record_memory_history(enabled=None)
        reads.passes = None

    def add(self, builder: Builder, origin: int) -> dict[str, Any]:
        """Adds them."""
        if self._events is None:
            return {}
        rows = [*self._own(), *self._cuda()]
        threads = sorted({row[6] for row in rows})
        lanes = dict(
            zip(threads, builder.numbers("lane", [builder.thread(os.getpid(), t) for t in threads]), strict=True)
        )
        known = builder.numbers("place", [row[7] for row in rows]).tolist()
        numbered = [(row[0] - origin, *row[1:6], int(lanes[row[6]]), n) for row, n in zip(rows, known, strict=True)]
        builder.add_memory(Allocations.of(numbered))
        return {"notes": self._notes}

    def _own(self) -> Iterator[Row]:
        device = 0
        for time, address, size, total, held, thread, seen in self._told.copy():
            yield time, address, size, total, held, device, thread, _place(seen)

    def _cuda(self) -> Iterator[Row]:
        events, passes = self._events, self._passes
        assert events is not None
        begins = [one[0] for one in passes]
        for device, (entries, (total, held)) in enumerate(zip(self._snapshot, self._before or [], strict=False)):
            for entry in entries:
                action, size = entry["action"], entry["size"]
                time = 1000 * entry["time_us"] - events.began_unix + events.began
                if time < self._since:  # in a history that the program began
                    continue
                held += HELD.get(action, 0) * size
                if not (way := ADDED.get(action, 0)):
                    continue
                total += way * size
                place = _users(entry.get("frames", ()))
                if place is None and way > 0 and (at := bisect_right(begins, time)) and time < passes[at - 1][1]:
                    place = _place(passes[at - 1][2])
                yield time, entry["addr"], way * size, total, held, device, os.getpid(), place


def _place(seen: Seen | None) -> Place | None:
    spot = reads.spot_of(seen) if seen is not None else None
    return places.resolve(spot)[0] if spot else None


def _users(frames: Any) -> Place | None:
    """The innermost line of the user's."""
    for frame in frames:
        if places.kind_of_file(frame["filename"]) == places.USER and frame["line"] > 0:
            return Place(frame["filename"], frame["line"])
    return None


SOURCE = Memory
