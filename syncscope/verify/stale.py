"""Reads of single values answered with the value of the step before, which was fetched beside the work meanwhile.

Steps go in blocks, in turns as the program is and so answered. What is measured is what a loop without these waits would take,
with everything else as it is. What it computes is wrong where the value matters: nothing of such a run is to be kept.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import sys
from collections import deque
from collections.abc import Callable
from time import monotonic_ns
from typing import Any, NamedTuple

from syncscope.tracers import places
from syncscope.tracers.hooks import methods, reads
from syncscope.tracers.hooks.patches import patches
from syncscope.verify.request import Request

BLOCK = 10  # steps that go one way
NAMES = ("item", "tolist", "__bool__", "__float__", "__int__", "__index__")


class Stale:
    """Answers late in every second block; which block is which is drawn for every two."""

    def __init__(self, request: Request) -> None:
        self._lines = {(os.path.realpath(path), line) for path, line in request.lines}
        self._late: list[bool] = [False]  # of each step
        self._pair: list[bool] = []
        self._on = False
        self._at = 0  # reads of this step so far
        self._slots: dict[tuple[Any, int], deque[_Slot]] = {}  # of each read of a step: the value before, and this one
        self._fetch: Callable[[Any, _Slot], None] = _copied
        self._fetched, self._fetching = 0, 0  # values, and ns of the host that they took
        self._event: Any = None  # behind the work of the step before
        self._there = True  # the host has waited for it
        self._draw = random.Random(request.seed)
        self.answered = 0

    def listen(self, stack: contextlib.ExitStack) -> None:
        """Puts the hooks in place."""
        stack.callback(patches.when_imported("torch", self._hear))
        stack.enter_context(patches.held())

    def _hear(self, torch: Any) -> None:
        for name in NAMES:
            methods.hear(torch._C.TensorBase, name, self._answer(name))

    def boundary(self) -> None:
        """A step has ended: the next block may begin."""
        self._at = 0
        if self._on and self._event is not None:
            self._event.record()
            self._there = False
        if len(self._late) % BLOCK == 0:
            if not self._pair:
                self._pair = self._draw.choice(([False, True], [True, False]))
            self._on = self._pair.pop()
        self._late.append(self._on)

    def _answer(self, name: str) -> methods.Before:
        def before(tensor: Any, args: Any, kwargs: Any) -> tuple[Any, ...] | None:
            if (
                not self._on
                or reads.local.inside
                or tensor.is_cpu
                or not reads.on_device(tensor)
                or tensor.numel() != 1
            ):
                return None
            seen = places.seen_from(sys._getframe(1))
            if self._lines and not self._is_meant(seen):
                return None
            began = monotonic_ns()
            slots = self._slots.setdefault((seen, self._at), deque())
            self._at += 1
            slots.append(slots.popleft() if len(slots) == 2 else self._memory(tensor))
            self._fetch(tensor, slots[-1])  # nobody waits for it yet
            self._fetched += 1
            self._fetching += monotonic_ns() - began
            if len(slots) == 1:
                return None
            if not self._there:
                self._event.synchronize()
                self._there = True
            self.answered += 1
            return (getattr(slots[0].value, name)(),)

        return before

    def _memory(self, tensor: Any) -> _Slot:
        """Of the host, for such a value."""
        torch, kind = sys.modules["torch"], tensor.device.type
        if self._event is None:
            self._event = getattr(torch, kind).Event()
            self._fetch = _by_driver(torch) if kind == "cuda" and not torch.version.hip else _copied
        value = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=kind == "cuda")
        return _Slot(value, value.data_ptr(), value.nbytes)

    def _is_meant(self, seen: places.Seen) -> bool:
        """Whether the user's line, or one of a library that reads for it, is one of those that are named."""
        for spot in (seen.user, seen.inner, seen.library):
            if spot is not None:
                place, _ = places.resolve(spot)
                if (os.path.realpath(place.path), place.line) in self._lines:
                    return True
        return False

    def found(self) -> dict[str, Any]:
        """Which steps were answered late, how many reads were, and what fetching a value took on the host, ns."""
        each = self._fetching / self._fetched if self._fetched else 0.0
        return {"late": self._late, "answered": self.answered, "fetching": each}


class _Slot(NamedTuple):
    """A value's memory on the host."""

    value: Any
    address: int
    size: int


def _copied(tensor: Any, slot: _Slot) -> None:
    slot.value.copy_(tensor.detach(), non_blocking=True)


def _by_driver(torch: Any) -> Callable[[Any, _Slot], None]:
    """Fetches without torch's way there, which takes longer than many a wait: one asynchronous copy, asked of CUDA's driver."""
    try:
        copy = ctypes.CDLL("libcuda.so.1").cuMemcpyDtoHAsync_v2
    except (OSError, AttributeError):
        return _copied
    copy.argtypes = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p
    stream_of = torch._C._cuda_getCurrentRawStream

    def fetch(tensor: Any, slot: _Slot) -> None:
        if copy(slot.address, tensor.data_ptr(), slot.size, stream_of(tensor.get_device())):
            _copied(tensor, slot)

    return fetch
