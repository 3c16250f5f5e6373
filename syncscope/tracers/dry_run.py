"""Dry mode: on the CPU, tensors that come from parameters and batches count as tensors of a device.

A tensor counts if it is a parameter, needs a gradient, was marked, or was computed from one that counts. Batches of a
DataLoader and of `syncscope.steps` are marked, and what is sent to a device by `.to(device)`. What `.cpu()`, `.numpy()` or
`.item()` gave back is the host's. torch.compile is off: compiled code has no lines.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator
from typing import Any

from syncscope.tracers.hooks.listeners import listeners
from syncscope.tracers.hooks.patches import patches

MARK = "_syncscope_on_device"
HOST = {"cpu", "numpy", "item", "tolist", "__bool__", "__float__", "__int__", "__index__", "__repr__", "__format__"}
_users = 0


def mark(value: Any) -> Any:
    """Counts the tensors in a nest of lists, tuples and dicts as a device's; returns the nest."""
    torch = sys.modules.get("torch") if _users else None  # where it was never imported there are no tensors
    if torch is not None:
        if isinstance(value, torch.Tensor):
            setattr(value, MARK, True)
        elif isinstance(value, dict):
            for item in value.values():
                mark(item)
        elif isinstance(value, (list, tuple)):
            for item in value:
                mark(item)
    return value


def counts(tensor: Any) -> bool:
    """Whether this tensor of the CPU is treated as one of a device."""
    known = tensor.__dict__.get(MARK)
    return bool(tensor.requires_grad) if known is None else bool(known)


@contextlib.contextmanager
def mode() -> Iterator[None]:
    """Inside, this thread's tensors are followed; works before torch is imported."""
    global _users
    _users += 1
    stack = contextlib.ExitStack()
    listeners.pretend = counts

    def begin(torch: Any) -> None:
        stack.enter_context(_follower(torch.overrides)())

    stack.callback(patches.when_imported("torch", begin))
    stack.callback(patches.when_imported("torch.utils.data.dataloader", _batches))
    stack.callback(patches.when_imported("torch._dynamo.config", _eager))
    try:
        with stack, patches.held():
            yield
    finally:
        _users -= 1
        if not _users:
            listeners.pretend = None


def _follower(overrides: Any) -> Any:
    class Follower(overrides.TorchFunctionMode):
        """Marks what is computed from what is marked."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            name = getattr(func, "__name__", "")
            if name == "cpu" and counts(result):
                result = func(args[0].view_as(args[0]))  # on the CPU it is the tensor itself, which still counts
                setattr(result, MARK, False)
            elif name not in HOST and _any_counts((*args, *(kwargs or {}).values())):
                mark(result)
            return result

    return Follower


def _any_counts(values: Any) -> bool:
    for value in values:
        if hasattr(value, "is_cpu"):
            if counts(value):
                return True
        elif isinstance(value, (list, tuple)) and _any_counts(value):
            return True
    return False


def _eager(config: Any) -> None:
    """What torch.compile made runs as it was written: compiled code has no lines, and its tensors cannot be followed."""
    before, config.disable = config.disable, True
    patches.stack.callback(setattr, config, "disable", before)


def _batches(dataloader: Any) -> None:
    """A DataLoader's batches are on their way to a device."""
    iterator = dataloader._BaseDataLoaderIter
    original = iterator.__next__

    @functools.wraps(original)
    def following(self: Any) -> Any:
        return mark(original(self))

    patches.replace(iterator, "__next__", following)
