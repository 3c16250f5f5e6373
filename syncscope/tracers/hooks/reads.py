"""The line recorder: which Python expression reads a tensor of a device, when, and for how long.

What needs a value, or a shape that depends on values, is replaced by a function that notes the caller's code and instruction;
the line is looked up afterwards. A tensor of the CPU costs one attribute. The outermost read counts: the `.item()` inside of
`print(x)` is `print`'s. `hooks/torch` says what is replaced in torch; `hooks/pyopencl` notes what has no such function (a
fallback inside of our own device, a driver call of pyopencl) where it waits.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from syncscope.tracers.hooks.listeners import Record, listeners
from syncscope.tracers.modules import path_from
from syncscope.tracers.opencl import compiled
from syncscope.tracers.places import Seen, Spot, seen_from


class _Local(threading.local):
    inside = False  # a read is on its way on this thread: what it reads in turn is its own

    def __init__(self) -> None:
        self.thread = threading.get_native_id()
        library = compiled.library()
        # blocking calls of the driver on this thread, and how many of them a read explains
        self.waits = library.waits_of_this_thread().contents if library is not None else (ctypes.c_uint64 * 2)()
        self.waits[1] = self.waits[0]


local = _Local()
# The thread that called backward, so that reads of the autograd threads, which have no frame of the user, get its line.
backward: list[Seen] = []


def here(frame: Any) -> Seen:
    """The user's frame among the callers, or the line that called backward."""
    seen = seen_from(frame)
    if seen.user is None and backward:
        return Seen(backward[-1].user, seen.library)
    return seen


def on_device(tensor: Any) -> bool:
    """Whether reading this waits."""
    try:
        if not tensor.is_cpu:
            return not tensor.is_meta
    except AttributeError:
        return False
    return listeners.pretend is not None and listeners.pretend(tensor)


def watched(op: str, original: Callable[..., Any], waits: Callable[..., bool] | None = None) -> Callable[..., Any]:
    """`original` for a tensor as first argument, noted as `op` where it reads; `waits(*args)` may say that it does not."""

    @functools.wraps(original)
    def read(*args: Any, **kwargs: Any) -> Any:
        if not args:
            return original(**kwargs)
        tensor = args[0]
        try:
            if tensor.is_cpu and listeners.pretend is None:
                return original(*args, **kwargs)
        except AttributeError:
            return original(*args, **kwargs)
        if local.inside or not on_device(tensor) or (waits is not None and not waits(*args, **kwargs)):
            return original(*args, **kwargs)
        return noted(op, sys._getframe(1), original, args, kwargs)

    return read


def noted(op: str, frame: Any, original: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Calls `original` and tells the listeners how long it took; the guards are asked first."""
    seen = here(frame)
    local.inside = True
    try:
        for guard in listeners.guards:
            guard(op, seen)
        start = monotonic_ns()
        try:
            return original(*args, **kwargs)
        finally:
            end = monotonic_ns()
            if listeners.reads:
                tell(op, frame, seen, start, end, _bytes(args))
    finally:
        local.inside = False
        explained()


def always(op: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """`original` noted as `op` whatever its arguments."""

    @functools.wraps(original)
    def read(*args: Any, **kwargs: Any) -> Any:
        if local.inside:
            return original(*args, **kwargs)
        return noted(op, sys._getframe(1), original, args, kwargs)

    return read


def explained() -> None:
    """A read says why this thread has waited in the driver."""
    waits = local.waits
    waits[1] = waits[0]


def unexplained() -> bool:
    """Whether this thread has waited in the driver since it was last asked, and no read says why."""
    waits = local.waits
    if waits[0] == waits[1]:
        return False
    waits[1] = waits[0]
    return not local.inside


def tell(op: str, frame: Any, seen: Seen, start: int, end: int, size: int = -1, operator: str = "") -> None:
    """Gives the listeners a read of this thread: from `start` to `end` ns, of `size` bytes, by an operator that fell back."""
    module = path_from(frame) if listeners.modules else ""
    record = Record(op, seen, local.thread, start, end, size, operator, module)
    for read in listeners.reads:
        read(record)


def _bytes(args: Any) -> int:
    try:
        return int(args[0].nbytes)
    except (AttributeError, IndexError, RuntimeError, NotImplementedError):
        return -1


def spot_of(seen: Seen) -> Spot | None:
    """The line to blame: the user's, else the library's."""
    return seen.user or seen.library
