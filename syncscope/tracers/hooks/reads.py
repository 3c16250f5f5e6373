"""The line recorder: which Python expression reads a tensor of a device, when, and for how long.

What needs a value, or a shape that depends on values, is heard as it is called (`methods`): the caller's code and instruction
are noted, and the line is looked up afterwards. The outermost read counts: the `.item()` inside of `print(x)` is `print`'s.
`hooks/torch` says what is heard in torch; `hooks/pyopencl` notes what has no such function (a fallback inside of our own
device, a driver call of pyopencl) where it waits.

What happens at every read is in reads.c once more, for that costs a third; where there is no compiler, what is here serves.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median
from time import monotonic_ns
from types import CodeType
from typing import Any

from syncscope.tracers import modules
from syncscope.tracers.hooks.listeners import Record, RowsKept, listeners
from syncscope.tracers.hooks.methods import Answer, Before, native
from syncscope.tracers.modules import IN_C, paths  # noqa: F401  (for reads.c)
from syncscope.tracers.opencl import compiled
from syncscope.tracers.places import BETWEEN, Seen, Spot, kind_of, kinds, seen_from, spot, spots  # noqa: F401  (for reads.c)

Selects = Callable[[tuple[Any, ...], Any], RowsKept | None]
"""Of the arguments of a call and its result: what was selected; None where that is not known."""

threads: dict[int, int] = {}  # the system's number of each thread that has read, by its POSIX number


class _Local(threading.local):
    inside = False  # a read is on its way on this thread: what it reads in turn is its own

    def __init__(self) -> None:
        self.thread = threads[threading.get_ident()] = threading.get_native_id()
        library = compiled.library()
        counts = library.waits_of_this_thread().contents if library is not None else (ctypes.c_uint64 * 2)()
        # blocking calls of the driver on this thread, and how many of them a read explains; a view, for ctypes takes 0.5 us
        self.waits = memoryview(counts).cast("B").cast("Q")
        self.waits[1] = self.waits[0]


local = _Local()


def _in_child() -> None:
    """The thread that forks goes on under another number."""
    if threads.pop(own := threading.get_ident(), None) is not None:
        threads.clear()
        local.thread = threads[own] = threading.get_native_id()


os.register_at_fork(after_in_child=_in_child)


@contextmanager
def unheard() -> Iterator[None]:
    """What this thread waits for in here is no read of the program's."""
    inside, local.inside = local.inside, True
    try:
        yield
    finally:
        local.inside = inside


class _Cost:
    """What noting reads takes, besides the reads; of the last of them, for the first wait for what is imported or built."""

    def __init__(self) -> None:
        self.ns: deque[int] = deque(maxlen=63)

    @property
    def usual(self) -> float:
        """ns a read."""
        in_c = native(IN_C)
        ns, reads = in_c.cost() if in_c is not None else (0, 0)
        return float(ns / reads) if reads else float(median(self.ns)) if self.ns else 0.0


cost = _Cost()
# Keeps torch from warning of the waits of a read that is known, which would cost more than the read: whether it did, and how to
# have it warn again. Set while torch's warnings are heard (`sync_debug`).
mute: Callable[[], bool] | None = None
unmute: Callable[[], object] | None = None
# The thread that called backward, so that reads of the autograd threads, which have no frame of the user, get its line.
backward: list[Seen] = []
# those that have ended: begin, end and caller; where somebody wants to know
passes: list[tuple[int, int, Seen]] | None = None


# Code of a library's function in Python whose reads are of another op than the function in C that it calls says.
named: dict[CodeType, str] = {}


def here(frame: Any) -> Seen:
    """The user's frame among the callers, or the line that called backward."""
    seen = seen_from(frame)
    if seen.user is None and backward:
        called = backward[-1]
        return Seen(called.user, seen.library, seen.inner or called.inner)
    return seen


plain: tuple[type, ...] = ()  # torch's own kinds of tensor, which answer for themselves
overridden: Callable[[Any], bool]


def on_device(tensor: Any) -> bool:
    """Whether reading this waits. Subclasses and modes that see what is asked of a tensor are not asked here: what they do in
    turn is."""
    global plain, overridden
    if not plain:
        torch = sys.modules["torch"]
        plain, overridden = (torch.Tensor, torch.nn.Parameter), torch._C._has_torch_function_unary
    if type(tensor) not in plain:
        return _other_on_device(tensor)
    if overridden(tensor):
        return False
    if not tensor.is_cpu:
        return not tensor.is_meta
    return listeners.pretend is not None and listeners.pretend(tensor)


def _other_on_device(tensor: Any) -> bool:
    torch = sys.modules["torch"]
    if not isinstance(tensor, torch._C.TensorBase) or torch._C._has_torch_function_unary(tensor):
        return False
    if tensor.__class__.__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl:
        return _of_device(torch._C._dispatch_keys(tensor))
    if not tensor.is_cpu:
        return not tensor.is_meta
    return listeners.pretend is not None and listeners.pretend(tensor)


def _of_device(keys: Any) -> bool:
    """Whether a tensor that answers in Python itself lies on a device: asking it for its device would be a call."""
    key = sys.modules["torch"]._C.DispatchKey
    return any(keys.has(getattr(key, name)) for name in ("CUDA", "XPU", "PrivateUse1", "HPU", "MPS"))


METHOD, FUNCTION, ALWAYS = range(3)  # as in reads.c


def _in_c(op: str, how: int, waits: Callable[..., bool] | None = None, selects: Selects | None = None) -> Before | None:
    in_c = native(IN_C)
    if in_c is None:
        return None
    in_c.know(globals())
    return in_c.before(op, how, waits, selects)  # type: ignore[no-any-return]


module_type: type | None = None  # torch.nn.Module, once it is there


def path_from(frame: Any) -> str:
    """The path of the module in which something is read."""
    return "" if module_type is None else modules.path_from(frame, module_type)


def method(op: str, waits: Callable[..., bool] | None = None, selects: Selects | None = None) -> Before:
    """For `methods.hear`: a method of a tensor is noted as `op` where it reads; `waits(tensor, ...)` may say that it does
    not, `selects` how many rows it kept."""

    def before(tensor: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Answer | None:
        __tracebackhide__ = True
        if local.inside or not on_device(tensor) or (waits is not None and not waits(tensor, *args, **(kwargs or {}))):
            return None
        return None, None, begin(op, sys._getframe(1), tensor, selects and partial(selects, (tensor, *args)))

    return _in_c(op, METHOD, waits, selects) or before


def function(op: str, waits: Callable[..., bool] | None = None, selects: Selects | None = None) -> Before:
    """The same for a function whose first argument is the tensor."""

    def before(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Answer | None:
        __tracebackhide__ = True
        if not args or local.inside or not on_device(args[0]):
            return None
        if waits is not None and not waits(*args, **(kwargs or {})):
            return None
        return None, None, begin(op, sys._getframe(1), args[0], selects and partial(selects, args))

    return _in_c(op, FUNCTION, waits, selects) or before


def always(op: str) -> Before:
    """The same for what waits whatever its arguments."""

    def before(*_: Any) -> Answer | None:
        __tracebackhide__ = True
        return None if local.inside else (None, None, begin(op, sys._getframe(1)))

    return _in_c(op, ALWAYS) or before


def begin(
    op: str, frame: Any, tensor: Any = None, selected: Callable[[Any], RowsKept | None] | None = None
) -> Callable[[Any], None]:
    """A read begins: the guards are asked. What is returned is to be called when it has ended, and tells the listeners;
    `selected` is then asked what the result says of the rows that were kept."""
    __tracebackhide__ = True  # where guards raise, pytest ends at the line that waits
    entered = monotonic_ns()
    while frame is not None and kind_of(frame.f_code) == BETWEEN:
        op = named.get(frame.f_code, op)
        frame = frame.f_back
    seen = here(frame)
    local.inside = True
    try:
        for guard in listeners.guards:
            guard(op, seen)
    except BaseException:
        local.inside = False
        raise
    muted = mute is not None and mute()
    start = monotonic_ns()

    def end(result: Any) -> None:
        now = monotonic_ns()
        if muted and unmute is not None:
            unmute()
        try:
            if listeners.reads:
                kept = selected(result) if selected is not None and result is not None else None
                tell(op, frame, seen, start, now, _bytes(tensor), selection=kept)
        finally:
            local.inside = False
            waits = local.waits
            waits[1] = waits[0]  # explained
            cost.ns.append(monotonic_ns() - now + start - entered)

    return end


def noted(op: str, frame: Any, original: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Calls `original` as a read."""
    __tracebackhide__ = True
    end = begin(op, frame)
    try:
        return original(*args, **kwargs)
    finally:
        end(None)


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


def tell(
    op: str,
    frame: Any,
    seen: Seen,
    start: int,
    end: int,
    size: int = -1,
    operator: str = "",
    selection: RowsKept | None = None,
) -> None:
    """Gives the listeners a read of this thread: from `start` to `end` ns, of `size` bytes, by an operator that fell back."""
    module = path_from(frame) if listeners.modules else ""
    record = tuple.__new__(Record, (op, seen, local.thread, start, end, size, operator, module, selection))
    for read in listeners.reads:
        read(record)


def _bytes(tensor: Any) -> int:
    try:
        return -1 if tensor is None else int(tensor.nbytes)
    except (AttributeError, RuntimeError, NotImplementedError):
        return -1


def spot_of(seen: Seen) -> Spot | None:
    """The line to blame: the user's, else the library's."""
    return seen.user or seen.inner or seen.library
