"""The line recorder: which Python expression reads a tensor of a device, when, and for how long.

Methods of Tensor and functions of torch that need a value, or a shape that depends on values, are replaced by functions that
note the caller's code and instruction; the line is looked up afterwards. A tensor of the CPU costs one attribute. The
outermost read counts: the `.item()` inside of `print(x)` is `print`'s.

What has no such function (a fallback inside of our own device, a driver call of pyopencl) is noted where it waits.
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
        self.waits = library.waits_of_this_thread().contents if library is not None else ctypes.c_uint64()
        self.seen = self.waits.value  # blocking calls of the driver that a read explains


local = _Local()
# The thread that called backward, so that reads of the autograd threads, which have no frame of the user, get its line.
backward: list[Seen] = []
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
                record = Record(op, seen, local.thread, start, end, _bytes(args), "", _module(frame))
                for sink in sinks:
                    sink(record)
    finally:
        local.inside = False
        local.seen = local.waits.value


def unexplained() -> bool:
    """Whether this thread has waited in the driver since it was last asked, and no read says why."""
    now = local.waits.value
    if now == local.seen:
        return False
    local.seen = now
    return not local.inside


def _module(frame: Any) -> str:
    return path_from(frame) if modules_wanted else ""


def _bytes(args: Any) -> int:
    try:
        return int(args[0].nbytes)
    except (AttributeError, IndexError, RuntimeError, NotImplementedError):
        return -1


def _is_mask(key: Any) -> bool:
    import torch

    kind = type(key)
    if kind is torch.Tensor:
        return key.dtype in (torch.bool, torch.uint8) and key.dim() > 0
    if kind is tuple:
        return any(type(k) is torch.Tensor and k.dim() > 0 and k.dtype in (torch.bool, torch.uint8) for k in key)
    return False


def _reads_index(tensor: Any, key: Any) -> bool:
    return _is_mask(key)


def _writes_index(tensor: Any, key: Any, value: Any) -> bool:
    """A number is filled in under a mask; a tensor needs to know how many elements there are."""
    return _is_mask(key) and getattr(value, "ndim", 0) > 0


def _tensor_repeats(tensor: Any, repeats: Any = None, *args: Any, **kwargs: Any) -> bool:
    unknown = kwargs.get("output_size") is None
    return unknown and (repeats is None or hasattr(repeats, "is_cpu"))


def _condition_alone(*args: Any, **kwargs: Any) -> bool:
    return len(args) + len(kwargs) == 1


def _no_output_size(*args: Any, **kwargs: Any) -> bool:
    return len(args) < 2 and kwargs.get("num_classes", -1) == -1


METHODS: dict[str, tuple[str, Callable[..., bool] | None]] = {
    "item": ("item", None),
    "tolist": ("tolist", None),
    "__bool__": ("bool", None),
    "__float__": ("float", None),
    "__int__": ("int", None),
    "__index__": ("index", None),
    "__complex__": ("complex", None),
    "__repr__": ("format", None),
    "__format__": ("format", None),
    "__contains__": ("bool", None),
    "__array__": ("asarray", None),
    "cpu": ("cpu", None),
    "numpy": ("numpy", None),
    "nonzero": ("nonzero", None),
    "argwhere": ("argwhere", None),
    "unique": ("unique", None),
    "unique_consecutive": ("unique_consecutive", None),
    "masked_select": ("masked_select", None),
    "bincount": ("bincount", None),
    "equal": ("equal", None),
    "allclose": ("allclose", None),
    "is_nonzero": ("is_nonzero", None),
    "repeat_interleave": ("repeat_interleave", _tensor_repeats),
    "__getitem__": ("mask_read", _reads_index),
    "__setitem__": ("mask_write", _writes_index),
}
FUNCTIONS: dict[str, tuple[str, Callable[..., bool] | None]] = {
    "nonzero": ("nonzero", None),
    "argwhere": ("argwhere", None),
    "unique": ("unique", None),
    "unique_consecutive": ("unique_consecutive", None),
    "masked_select": ("masked_select", None),
    "bincount": ("bincount", None),
    "equal": ("equal", None),
    "allclose": ("allclose", None),
    "is_nonzero": ("is_nonzero", None),
    "where": ("where", _condition_alone),
    "repeat_interleave": ("repeat_interleave", _tensor_repeats),
}

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


def _torch(torch: Any) -> None:
    for name, (op, waits) in METHODS.items():
        original = getattr(torch.Tensor, name, None)
        if original is not None:
            replace(torch.Tensor, name, watched(op, original, waits))
    for name, (op, waits) in FUNCTIONS.items():
        replace(torch, name, watched(op, getattr(torch, name), waits))
    replace(torch.Tensor, "to", _to(torch.Tensor.to))
    replace(torch.nn.functional, "one_hot", watched("one_hot", torch.nn.functional.one_hot, _no_output_size))
    replace(torch.autograd, "backward", _backward(torch.autograd.backward))
    replace(torch.autograd, "grad", _backward(torch.autograd.grad))
    for backend in ("cuda", "ocl", "xpu", "accelerator"):
        module = getattr(torch, backend, None)
        if module is not None and hasattr(module, "synchronize"):
            replace(module, "synchronize", always("synchronize", module.synchronize))


def _to(original: Callable[..., Any]) -> Callable[..., Any]:
    """`.to(...)` waits when it leaves the device; only its result says so. In dry mode it is the way to the device."""

    @functools.wraps(original)
    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.is_cpu or local.inside:
            return original(self, *args, **kwargs)
        start = monotonic_ns()
        if guards and on_device(self) and _goes_to_cpu(args, kwargs):
            return noted("cpu", sys._getframe(1), original, (self, *args), kwargs)
        local.inside = True
        try:
            result = original(self, *args, **kwargs)
        finally:
            local.inside = False
        if sinks and not self.is_cpu and result.is_cpu and not kwargs.get("non_blocking"):
            frame, end = sys._getframe(1), monotonic_ns()
            record = Record("cpu", here(frame), local.thread, start, end, _bytes((self,)), "", _module(frame))
            for sink in sinks:
                sink(record)
        return result

    return to


def _goes_to_cpu(args: Any, kwargs: Any) -> bool:
    target = kwargs.get("device", args[0] if args else None)
    if getattr(target, "device", None) is not None:
        target = target.device
    return str(target).partition(":")[0] == "cpu" and not kwargs.get("non_blocking")


def always(op: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """`original` noted as `op` whatever its arguments."""

    @functools.wraps(original)
    def read(*args: Any, **kwargs: Any) -> Any:
        if local.inside:
            return original(*args, **kwargs)
        return noted(op, sys._getframe(1), original, args, kwargs)

    return read


regions: list[Callable[[str, int, int], None]] = []
"""Called after each `record_function` of the user's with its name, host start and end, on its thread."""


def regions_of(torch: Any) -> None:
    """Has `record_function` report to `regions`; for recordings only, it is called more often than it seems."""
    record_function = torch.autograd.profiler.record_function
    replace(record_function, "__enter__", _annotated(record_function.__enter__, True))
    replace(record_function, "__exit__", _annotated(record_function.__exit__, False))


def _annotated(original: Callable[..., Any], entering: bool) -> Callable[..., Any]:
    @functools.wraps(original)
    def method(self: Any, *args: Any) -> Any:
        if entering:
            self._syncscope_began = monotonic_ns()
            return original(self, *args)
        try:
            return original(self, *args)
        finally:
            began = getattr(self, "_syncscope_began", None)
            if began is not None:
                for region in regions:
                    region(str(self.name), began, monotonic_ns())

    return method


def _backward(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        seen = seen_from(sys._getframe(1))
        if seen.user is None:
            return original(*args, **kwargs)
        backward.append(seen)
        try:
            return original(*args, **kwargs)
        finally:
            backward.remove(seen)

    return run


# ---- our own device: every wait of its queue, with the operator that caused it ----

BY_OPERATOR = {
    "_local_scalar_dense": "item",
    "nonzero": "nonzero",
    "index": "mask_read",
    "index_put": "mask_write",
    "_index_put_impl_": "mask_write",
    "_unique2": "unique",
    "_unique": "unique",
    "unique_dim": "unique",
    "unique_consecutive": "unique_consecutive",
    "masked_select": "masked_select",
    "_to_copy": "cpu",
    "copy_": "cpu",
    "_copy_from": "cpu",
    "equal": "equal",
    "is_nonzero": "is_nonzero",
    "repeat_interleave": "repeat_interleave",
    "bincount": "bincount",
}


def _kernels(queue: Any) -> None:
    def wait(operator: str, size: int, start: int, end: int) -> None:
        local.seen = local.waits.value
        if local.inside:
            return
        fallback = operator.startswith("fallback of ")
        name = operator.removeprefix("fallback of ").partition("::")[2] or operator
        op = "ocl_fallback" if fallback else BY_OPERATOR.get(name.partition(".")[0], name)
        frame = sys._getframe(1)
        seen = here(frame)
        record = Record(op, seen, local.thread, start, end, size, operator if fallback else "", _module(frame))
        for guard in guards:
            guard(op, seen)
        for sink in sinks:
            sink(record)

    def operated(operator: str, start: int, end: int, fallback: bool) -> None:
        """What waited without a read: the destructor of an event that pyopencl keeps host memory alive with, say."""
        if unexplained():
            frame = sys._getframe(1)
            name = operator.removeprefix("fallback of ").partition("::")[2] or operator
            why = operator if fallback else ""
            record = Record(name, here(frame), local.thread, start, end, -1, why, _module(frame))
            for sink in sinks:
                sink(record)

    for listeners, listener in ((queue.readers, wait), (queue.watchers, operated)):
        listeners.append(listener)
        _undo.append(functools.partial(listeners.remove, listener))


# ---- plain pyopencl ----

_PYOPENCL = {
    "_enqueue_read_buffer": "read_buffer",
    "_enqueue_write_buffer": "write_buffer",
    "_enqueue_read_buffer_rect": "read_buffer",
    "_enqueue_write_buffer_rect": "write_buffer",
    "_enqueue_read_image": "read_image",
    "_enqueue_write_image": "write_image",
    "_enqueue_svm_memcpy": "svm_memcpy",
    "enqueue_map_buffer": "map",
    "enqueue_map_image": "map",
    "wait_for_events": "synchronize",
}


def _pyopencl(module: Any) -> None:
    library = module._cl
    for name, op in _PYOPENCL.items():
        original = getattr(library, name, None)
        if original is not None:
            new = _driver(op, original)
            replace(library, name, new)
            if getattr(module, name, None) is original:
                replace(module, name, new)
    replace(library.CommandQueue, "finish", _driver("synchronize", library.CommandQueue.finish))
    replace(library.Event, "wait", _driver("synchronize", library.Event.wait))


def _driver(op: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """A call of pyopencl that may wait, noted unless our own device makes it: that says more of itself."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if local.inside or kwargs.get("is_blocking") is False:
            return original(*args, **kwargs)
        frame = sys._getframe(1)
        caller: Any = frame
        while caller is not None and "/pyopencl/" in caller.f_code.co_filename:
            caller = caller.f_back
        if caller is not None and caller.f_code.co_filename.startswith(_KERNELS):
            return original(*args, **kwargs)
        return noted(op, frame, original, args, kwargs)

    return call


_KERNELS = __file__.rpartition("/tracers/")[0] + "/kernels/"
when_imported("torch", _torch)
when_imported("syncscope.kernels.queue", _kernels)
when_imported("pyopencl", _pyopencl)


def spot_of(seen: Seen) -> Spot | None:
    """The line to blame: the user's, else the library's."""
    return seen.user or seen.library
