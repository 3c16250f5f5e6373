"""Waits that no function of torch stands for: in our own device, with the operator that caused them, and in pyopencl."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from syncscope.tracers.hooks import reads
from syncscope.tracers.hooks.listeners import listeners
from syncscope.tracers.hooks.patches import patches
from syncscope.tracers.places import HERE

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
        reads.explained()
        if reads.local.inside:
            return
        fallback = operator.startswith("fallback of ")
        name = operator.removeprefix("fallback of ").partition("::")[2] or operator
        op = "ocl_fallback" if fallback else BY_OPERATOR.get(name.partition(".")[0], name)
        frame = sys._getframe(1)
        seen = reads.here(frame)
        for guard in listeners.guards:
            guard(op, seen)
        reads.tell(op, frame, seen, start, end, size, operator if fallback else "")

    queue.readers.append(wait)
    patches.stack.callback(queue.readers.remove, wait)


def explain(operator: str, start: int, end: int, fallback: bool) -> None:
    """After an operator that waited in the driver without a read: the destructor of an event that pyopencl keeps host memory
    alive with, say."""
    if reads.unexplained():
        frame = sys._getframe(1)
        name = operator.removeprefix("fallback of ").partition("::")[2] or operator
        reads.tell(name, frame, reads.here(frame), start, end, -1, operator if fallback else "")


_PYOPENCL = {
    "_enqueue_read_buffer": "read_buffer",
    "_enqueue_write_buffer": "write_buffer",
    "_enqueue_read_buffer_rect": "read_buffer",
    "_enqueue_write_buffer_rect": "write_buffer",
    "_enqueue_read_image": "read_image",
    "_enqueue_write_image": "write_image",
    "_enqueue_svm_memcpy": "svm_memcpy",
    "_enqueue_svm_map": "map",
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
            patches.replace(library, name, new)
            if getattr(module, name, None) is original:
                patches.replace(module, name, new)
    patches.replace(library.CommandQueue, "finish", _driver("synchronize", library.CommandQueue.finish))
    patches.replace(library.Event, "wait", _driver("synchronize", library.Event.wait))


def _driver(op: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """A call of pyopencl that may wait, noted unless our own device makes it: that says more of itself."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if reads.local.inside or kwargs.get("is_blocking") is False:
            return original(*args, **kwargs)
        frame = sys._getframe(1)
        caller: Any = frame
        while caller is not None and "/pyopencl/" in caller.f_code.co_filename:
            caller = caller.f_back
        if caller is not None and caller.f_code.co_filename.startswith(HERE + "kernels/"):
            return original(*args, **kwargs)
        return reads.noted(op, frame, original, args, kwargs)

    return call


INSTALL = (("syncscope.kernels.queue", _kernels), ("pyopencl", _pyopencl))
