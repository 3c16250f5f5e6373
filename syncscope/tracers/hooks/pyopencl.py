"""Waits that no function of torch stands for: in our own device, with the operator that caused them, and in pyopencl."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from syncscope.model.ops import FALLBACK_OF, Op, of_fallback
from syncscope.tracers.hooks import reads
from syncscope.tracers.hooks.listeners import listeners
from syncscope.tracers.hooks.patches import patches
from syncscope.tracers.places import HERE

ON_CPU = 1  # as kernels/queue.py has it
BY_OPERATOR = {
    "_local_scalar_dense": Op.ITEM,
    "index": Op.MASK_READ,
    "index_put": Op.MASK_WRITE,
    "_index_put_impl_": Op.MASK_WRITE,
    "_unique2": Op.UNIQUE,
    "_unique": Op.UNIQUE,
    "unique_dim": Op.UNIQUE,
    "_to_copy": Op.CPU,
    "copy_": Op.CPU,
    "_copy_from": Op.CPU,
}


def _kernels(queue: Any) -> None:
    def wait(operator: str, size: int, start: int, end: int) -> None:
        reads.explained()
        if reads.local.inside:
            return
        fallback = operator.startswith(FALLBACK_OF)
        name = _plain(operator)
        op = (of_fallback(operator) or Op.OCL_FALLBACK) if fallback else BY_OPERATOR.get(name.partition(".")[0], name)
        frame = sys._getframe(1)
        seen = reads.here(frame)
        for guard in listeners.guards:
            guard(op, seen)
        reads.tell(op, frame, seen, start, end, size, operator if fallback else "")

    queue.readers.append(wait)
    patches.later(queue.readers.remove, wait)


def _plain(operator: str) -> str:
    """Its name as `torch` has it, whoever computes it."""
    return operator.removeprefix(FALLBACK_OF).partition("::")[2] or operator


def explain(operator: str, start: int, end: int, how: int) -> None:
    """After an operator that waited in the driver without a read: the destructor of an event that pyopencl keeps host memory
    alive with, say."""
    if reads.unexplained():
        frame = sys._getframe(1)
        reads.tell(_plain(operator), frame, reads.here(frame), start, end, -1, operator if how == ON_CPU else "")


_PYOPENCL = {
    "_enqueue_read_buffer": Op.READ_BUFFER,
    "_enqueue_write_buffer": Op.WRITE_BUFFER,
    "_enqueue_read_buffer_rect": Op.READ_BUFFER,
    "_enqueue_write_buffer_rect": Op.WRITE_BUFFER,
    "_enqueue_read_image": Op.READ_IMAGE,
    "_enqueue_write_image": Op.WRITE_IMAGE,
    "_enqueue_svm_memcpy": Op.SVM_MEMCPY,
    "_enqueue_svm_map": Op.MAP,
    "enqueue_map_buffer": Op.MAP,
    "enqueue_map_image": Op.MAP,
    "wait_for_events": Op.SYNCHRONIZE,
}


@functools.cache
def _calls(owner: Any, library: Any) -> dict[str, tuple[Any, Any]]:
    """What this module calls the library's functions by, each beside what takes its place."""
    found = [(name, op, vars(owner).get(name)) for name, op in _PYOPENCL.items()]
    own = [(name, op, call) for name, op, call in found if call is not None and call is vars(library).get(name)]
    return {name: (call, _driver(op, call)) for name, op, call in own}


@functools.cache
def _methods(library: Any) -> list[tuple[Any, str, Any]]:
    waits = (library.CommandQueue, "finish"), (library.Event, "wait")
    return [(kind, name, _driver(Op.SYNCHRONIZE, vars(kind)[name])) for kind, name in waits]


def _pyopencl(module: Any) -> None:
    library = module._cl
    for owner in (library, module):
        now = vars(owner)
        calls = _calls(owner, library).items()
        patches.replace_names(now, {name: ours for name, (theirs, ours) in calls if now.get(name) is theirs})
    patches.replace_all(_methods(library))


# where our device waits, and where a program asks it to
QUEUE, ASKED = HERE + "kernels/queue.py", HERE + "kernels/backend.py"


def _driver(op: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """A call of pyopencl that may wait, noted unless our own device makes it: that says more of itself."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if reads.local.inside or kwargs.get("is_blocking") is False:
            return original(*args, **kwargs)
        frame = sys._getframe(1)
        caller: Any = frame
        while caller is not None and ("/pyopencl/" in caller.f_code.co_filename or caller.f_code.co_filename == QUEUE):
            caller = caller.f_back
        path = "" if caller is None else caller.f_code.co_filename
        if path.startswith(HERE + "kernels/") and path != ASKED:
            return original(*args, **kwargs)
        return reads.noted(op, frame, original, args, kwargs)

    return call


INSTALL = (("syncscope.kernels.queue", _kernels), ("pyopencl", _pyopencl))
