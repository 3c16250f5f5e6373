"""The line recorder: which Python expression reads a tensor of a device, when, and for how long.

What needs a value, or a shape that depends on values, is replaced by a function that notes the caller's code and instruction;
the line is looked up afterwards. A tensor of the CPU costs one attribute. The outermost read counts: the `.item()` inside of
`print(x)` is `print`'s. `torch_reads` says what is replaced in torch; `driver_reads` notes what has no such function (a
fallback inside of our own device, a driver call of pyopencl) where it waits.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from collections.abc import Callable
from time import monotonic_ns
from typing import Any, NamedTuple

from syncscope.tracers import native
from syncscope.tracers.modules import path_from
from syncscope.tracers.places import Seen, Spot, seen_from


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


Sink = Callable[[Record], None]
Guard = Callable[[str, Seen], None]

sinks: list[Sink] = []
modules_wanted = 0  # how many of the sinks want to know the nn.Module: it costs microseconds
guards: list[Guard] = []
"""Called before a read, on its thread; what they raise is what the user's line raises."""


class _Local(threading.local):
    inside = False  # a read is on its way on this thread: what it reads in turn is its own

    def __init__(self) -> None:
        self.thread = threading.get_native_id()
        library = native.library()
        # blocking calls of the driver on this thread, and how many of them a read explains
        self.waits = library.waits_of_this_thread().contents if library is not None else (ctypes.c_uint64 * 2)()
        self.waits[1] = self.waits[0]


local = _Local()
# The thread that called backward, so that reads of the autograd threads, which have no frame of the user, get its line.
backward: list[Seen] = []
# Called after each `record_function` of the user's with its name, host start and end, on its thread.
regions: list[Callable[[str, int, int], None]] = []
# Says whether a tensor of the CPU is to be treated as one of a device (dry mode); None: no.
pretend: Callable[[Any], bool] | None = None


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
    return pretend is not None and pretend(tensor)


def watched(op: str, original: Callable[..., Any], waits: Callable[..., bool] | None = None) -> Callable[..., Any]:
    """`original` for a tensor as first argument, noted as `op` where it reads; `waits(*args)` may say that it does not."""

    @functools.wraps(original)
    def read(*args: Any, **kwargs: Any) -> Any:
        if not args:
            return original(**kwargs)
        tensor = args[0]
        try:
            if tensor.is_cpu and pretend is None:
                return original(*args, **kwargs)
        except AttributeError:
            return original(*args, **kwargs)
        if local.inside or not on_device(tensor) or (waits is not None and not waits(*args, **kwargs)):
            return original(*args, **kwargs)
        return noted(op, sys._getframe(1), original, args, kwargs)

    return read


def noted(op: str, frame: Any, original: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Calls `original` and tells the sinks how long it took; the guards are asked first."""
    seen = here(frame)
    local.inside = True
    try:
        for guard in guards:
            guard(op, seen)
        start = monotonic_ns()
        try:
            return original(*args, **kwargs)
        finally:
            end = monotonic_ns()
            if sinks:
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
    """Gives the sinks a read of this thread: from `start` to `end` ns, of `size` bytes, by an operator that fell back."""
    module = path_from(frame) if modules_wanted else ""
    record = Record(op, seen, local.thread, start, end, size, operator, module)
    for sink in sinks:
        sink(record)


def _bytes(args: Any) -> int:
    try:
        return int(args[0].nbytes)
    except (AttributeError, IndexError, RuntimeError, NotImplementedError):
        return -1


_users = 0
_undo: list[Callable[[], object]] = []
_lock = threading.RLock()


def undo(action: Callable[[], object]) -> None:
    """Something to do at `uninstall`."""
    _undo.append(action)


def replace(owner: Any, name: str, new: Any) -> None:
    """Sets an attribute until `uninstall`."""
    if name in vars(owner):
        _undo.append(functools.partial(setattr, owner, name, vars(owner)[name]))
    else:  # it was inherited
        _undo.append(functools.partial(delattr, owner, name))
    setattr(owner, name, new)


def install() -> None:
    """Puts the readers in place, for torch and pyopencl as far as they are imported; counted."""
    global _users
    with _lock:
        _users += 1
        rescan()


def uninstall() -> None:
    """Gives everything back when the last user has gone."""
    global _users
    with _lock:
        _users -= 1
        if not _users:
            for action in reversed(_undo):
                action()
            _undo.clear()
            _ready.clear()


Installer = Callable[[Any], None]
_installers: list[tuple[str, Installer]] = []
_ready: set[tuple[str, Installer]] = set()


def when_imported(name: str, put: Installer) -> Callable[[], None]:
    """Has `put` called with a library as soon as it is whole, while readers are installed; returns how to take that back."""
    _installers.append((name, put))
    return functools.partial(_installers.remove, (name, put))


def awaited(name: str) -> bool:
    """Whether somebody wants to know when this is imported."""
    return any(name == n for n, _ in _installers)


def rescan(just_now: str = "") -> None:
    """Takes in libraries that were imported since; `just_now` is one whose import is ending."""
    if not _users:
        return
    for name, put in _installers.copy():
        module = sys.modules.get(name)
        if module is None or (name, put) in _ready:
            continue
        with _lock:
            if name != just_now and getattr(module.__spec__, "_initializing", False):
                continue
            if (name, put) not in _ready:
                _ready.add((name, put))
                put(module)


def spot_of(seen: Seen) -> Spot | None:
    """The line to blame: the user's, else the library's."""
    return seen.user or seen.library
