"""What torch has that reads: methods of Tensor, functions, `.to`, `record_function` and the backward pass."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from syncscope.tracers.hooks import reads, sync_debug
from syncscope.tracers.hooks.listeners import listeners
from syncscope.tracers.hooks.patches import patches
from syncscope.tracers.places import seen_from

Waits = Callable[..., bool] | None


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


def _has_duplicates(tensor: Any) -> bool:
    """Perhaps; torch's own debug mode does not know of this wait, which is a library's (thrust)."""
    return bool(tensor.is_sparse and not tensor.is_coalesced())


def _tensor_repeats(tensor: Any, repeats: Any = None, *args: Any, **kwargs: Any) -> bool:
    unknown = kwargs.get("output_size") is None
    return unknown and (repeats is None or hasattr(repeats, "is_cpu"))


def _condition_alone(*args: Any, **kwargs: Any) -> bool:
    return len(args) + len(kwargs) == 1


def _no_output_size(*args: Any, **kwargs: Any) -> bool:
    return len(args) < 2 and kwargs.get("num_classes", -1) == -1


METHODS: dict[str, tuple[str, Waits]] = {
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
    "coalesce": ("coalesce", _has_duplicates),
    "equal": ("equal", None),
    "allclose": ("allclose", None),
    "is_nonzero": ("is_nonzero", None),
    "repeat_interleave": ("repeat_interleave", _tensor_repeats),
    "__getitem__": ("mask_read", _reads_index),
    "__setitem__": ("mask_write", _writes_index),
}
FUNCTIONS: dict[str, tuple[str, Waits]] = {
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


def _torch(torch: Any) -> None:
    for name, (op, waits) in METHODS.items():
        original = getattr(torch.Tensor, name, None)
        if original is not None:
            patches.replace(torch.Tensor, name, reads.watched(op, original, waits))
    for name, (op, waits) in FUNCTIONS.items():
        patches.replace(torch, name, reads.watched(op, getattr(torch, name), waits))
    global uploads_wait
    uploads_wait = frozenset({"cuda"} if torch.version.cuda or torch.version.hip else ())
    patches.replace(torch.Tensor, "to", _to(torch.Tensor.to))
    patches.replace(torch.Tensor, "cuda", _cuda(torch.Tensor.cuda))
    patches.replace(
        torch.nn.functional, "one_hot", reads.watched("one_hot", torch.nn.functional.one_hot, _no_output_size)
    )
    patches.replace(torch.autograd, "backward", _backward(torch.autograd.backward))
    patches.replace(torch.autograd, "grad", _backward(torch.autograd.grad))
    for backend in ("cuda", "ocl", "xpu", "accelerator"):
        module = getattr(torch, backend, None)
        if module is not None and hasattr(module, "synchronize"):
            patches.replace(module, "synchronize", reads.always("synchronize", module.synchronize))


def _torchvision(ops: Any) -> None:
    for module in (ops, ops.boxes):
        patches.replace(module, "nms", reads.watched("nms", sync_debug.quiet(module.nms)))


def _to(original: Callable[..., Any]) -> Callable[..., Any]:
    """`.to(...)` waits when it leaves the device. In dry mode it is the way to the device."""

    @functools.wraps(original)
    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.is_cpu:
            return original(self, *args, **kwargs) if not uploads_wait else _uploaded(original, self, args, kwargs)
        if reads.local.inside or not _goes_to_cpu(args, kwargs):
            return original(self, *args, **kwargs)
        return reads.noted("cpu", sys._getframe(1), original, (self, *args), kwargs)

    return to


# Devices to which a copy from ordinary memory makes the host wait; to our own it goes while the host goes on.
uploads_wait: frozenset[str] = frozenset()


def _uploaded(original: Callable[..., Any], tensor: Any, args: Any, kwargs: Any) -> Any:
    """A copy to the device, noted where the host waits for it: from memory that is not pinned, or without non_blocking."""
    if reads.local.inside:
        return original(tensor, *args, **kwargs)
    start = monotonic_ns()
    reads.local.inside = True
    try:
        result = original(tensor, *args, **kwargs)
    finally:
        reads.local.inside = False
    if result.device.type in uploads_wait and not (kwargs.get("non_blocking") and tensor.is_pinned()):
        frame, end = sys._getframe(2), monotonic_ns()
        reads.tell("to_device", frame, reads.here(frame), start, end, int(tensor.nbytes))
    return result


def _cuda(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def cuda(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not self.is_cpu or not uploads_wait:
            return original(self, *args, **kwargs)
        return _uploaded(original, self, args, kwargs)

    return cuda


def _goes_to_cpu(args: Any, kwargs: Any) -> bool:
    target = kwargs.get("device", args[0] if args else None)
    if getattr(target, "device", None) is not None:
        target = target.device
    return str(target).partition(":")[0] == "cpu" and not kwargs.get("non_blocking")


def regions(torch: Any) -> None:
    """Has `record_function` report to the listeners; for recordings only, it is called more often than it seems."""
    record_function = torch.autograd.profiler.record_function
    patches.replace(record_function, "__enter__", _annotated(record_function.__enter__, True))
    patches.replace(record_function, "__exit__", _annotated(record_function.__exit__, False))


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
                for region in listeners.regions:
                    region(str(self.name), began, monotonic_ns())

    return method


def _backward(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        seen = seen_from(sys._getframe(1))
        if seen.user is None:
            return original(*args, **kwargs)
        reads.backward.append(seen)
        try:
            return original(*args, **kwargs)
        finally:
            reads.backward.remove(seen)

    return run


INSTALL = (("torch", _torch), ("torchvision.ops", _torchvision))
