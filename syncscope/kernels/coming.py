"""Kernels that are being built while the host goes on: side by side, in the order in which they are asked for.

A driver takes a tenth of a second to one second for each, and the first step of a network asks for a hundred. So on a GPU who
asks gets a promise; what is enqueued meanwhile stands in line (`queue`), and who waits for the device waits for its kernels.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from time import monotonic

import pyopencl as cl

from syncscope.kernels import beside
from syncscope.kernels.device import is_gpu

# PoCL builds a kernel when it is enqueued, on threads of its own: there is nothing to gain.
ahead = os.environ.get(beside.ENV, "beside" if is_gpu else "now") in ("ahead", "beside")
BUILDERS = beside.BUILDERS  # threads
PATIENCE = 2.0  # seconds, then who waits is told
KEPT = 0.1  # seconds within which a driver loads what it has built before
_EACH = 0.1  # seconds between two looks
_pool: ThreadPoolExecutor | None = None
_local = threading.local()
asked = made = 0  # kernels so far
_waited = 0.0  # seconds that callers waited for kernels that were built while they did


class Coming:
    """A kernel that is being built."""

    __slots__ = ("_future", "function_name", "made")

    def __init__(self, name: str, future: Future[cl.Kernel]) -> None:
        self.function_name, self._future = name, future
        self.made: cl.Kernel | None = None

    def ready(self) -> cl.Kernel | None:
        """The kernel, if it is there."""
        if self.made is None and self._future.done():
            self.made = self._future.result()
        return self.made

    def wait(self, began: float | None = None) -> cl.Kernel:
        """The kernel, however long it takes. Two seconds after `began` (seconds of `time.monotonic`; now, by default) standard
        error is told how many are there."""
        began = monotonic() if began is None else began
        while self.made is None:
            try:
                self.made = self._future.result(_EACH)
            except NotYet:
                if monotonic() - began > PATIENCE:
                    _tell()
        return self.made


def build(name: str, make: Callable[[], cl.Kernel]) -> cl.Kernel | Coming:
    """What `make` makes, or a promise of it."""
    global _pool, asked
    if not ahead or getattr(_local, "now", False):
        return _at_once(make)
    if _pool is None:
        _pool = ThreadPoolExecutor(BUILDERS, "syncscope-ocl-build", beside.by_a_pool)
    asked += 1

    def counted() -> cl.Kernel:
        global made
        try:
            return make()
        finally:
            made += 1

    return Coming(name, _pool.submit(counted))


def _at_once(make: Callable[[], cl.Kernel]) -> cl.Kernel:
    """What it makes. Who waits for several that the driver had not kept is told after two seconds, once in a process."""
    global _waited
    began = monotonic()
    try:
        return make()
    finally:
        took = monotonic() - began
        if took > KEPT and _waited <= PATIENCE < _waited + took:
            erase = "\r\x1b[K" if sys.stderr.isatty() else ""  # of the line that is rewritten while a program runs
            print(
                f"{erase}ocl: building kernels for this device; the next start of this program finds them built",
                file=sys.stderr,
                flush=True,
            )
        _waited += took if took > KEPT else 0.0


def kernel(one: cl.Kernel | Coming) -> cl.Kernel:
    """A kernel that may be called."""
    return one.wait() if isinstance(one, Coming) else one


@contextlib.contextmanager
def at_once() -> Iterator[None]:
    """A region in which this thread gets kernels, and no promises."""
    before = getattr(_local, "now", False)
    _local.now = True
    try:
        yield
    finally:
        _local.now = before


_told = -1  # how many kernels had been made when standard error was last told


def _tell() -> None:
    """One line; on a terminal it counts."""
    global _told
    terminal = sys.stderr.isatty()
    if _told == made or (_told >= 0 and not terminal):
        return
    said = f"ocl: building kernels for this device, {made} of {asked}; the next start of this program finds them built"
    print(f"\r{said} " if terminal else said, end="" if terminal else "\n", file=sys.stderr, flush=True)
    _told = made


def waited() -> None:
    """Ends the line, where there is one: all kernels that were waited for are there."""
    global _told
    if _told >= 0 and sys.stderr.isatty():
        print(file=sys.stderr)
    _told = -1
