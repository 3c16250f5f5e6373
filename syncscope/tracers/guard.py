"""`forbid_syncs` and `allow_syncs`: a line that would make the host wait raises, or warns, before it waits.

What is forbidden belongs to the running context (contextvars): to this thread and this task, not to others.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from syncscope.model.source import Place
from syncscope.tracers import dry_run, places
from syncscope.tracers.hooks import listening, reads
from syncscope.tracers.hooks.listeners import Listener

Advise = Callable[[str, Place], str]


class SyncError(RuntimeError):
    """A line made the host wait where that was forbidden. `op` says how, `place` where."""

    def __init__(self, message: str, op: str, place: Place | None) -> None:
        super().__init__(message)
        self.op = op
        self.place = place


class SyncWarning(UserWarning):
    """A line made the host wait where that was to be told."""


_Policy = tuple[
    dict[Any, Any] | None, Advise | None
]  # where it is noted what was warned of (None: raise), and the advice
_policy: ContextVar[_Policy | None] = ContextVar("syncscope forbids", default=None)


@contextlib.contextmanager
def forbid_syncs(*, warn: bool = False, dry: bool | None = None, advise: Advise | None = None) -> Iterator[None]:
    """Inside, a read of a device tensor raises `SyncError` at its line, or warns once a line.

    `dry` treats tensors of the CPU that come from parameters and batches as a device's; None: where there is no device.
    `advise(op, place)` may say how to avoid it.
    """
    token = _policy.set(({} if warn else None, advise))
    try:
        with listening(Listener(guard=_check, sync_debug=True)), dry_if(dry):
            yield
    finally:
        _policy.reset(token)


@contextlib.contextmanager
def allow_syncs(reason: str = "") -> Iterator[None]:
    """Inside, reads are allowed again; `reason` is for the reader of the code."""
    token = _policy.set(None)
    try:
        yield
    finally:
        _policy.reset(token)


def dry_if(dry: bool | None) -> contextlib.AbstractContextManager[None]:
    """The dry run if it is asked for, or (None) needed."""
    return dry_run.mode() if (not has_device() if dry is None else dry) else contextlib.nullcontext()


def has_device() -> bool:
    """Whether tensors of this process can live on a device."""
    torch = sys.modules.get("torch")
    if "syncscope.kernels" in sys.modules or torch is None:
        return torch is not None
    return bool(torch.cuda.is_available() or torch.xpu.is_available())


def _check(op: str, seen: places.Seen) -> None:
    policy = _policy.get()
    if policy is None:
        return
    warned, advise = policy
    spot = reads.spot_of(seen)
    place, _ = places.resolve(spot) if spot else (None, -1)
    text = f"{place or 'an unknown line'}: {op} makes the host wait for the device"
    if seen.library is not None and seen.user is not None:
        text += f" (in {places.short(seen.library)})"
    _policy.set(None)  # the advice may read as it likes
    try:
        advice = advise(op, place) if advise is not None and place is not None else ""
    finally:
        _policy.set(policy)
    text += f"\n hint: {advice}" if advice else ""
    if warned is None:
        raise SyncError(text, op, place)
    path, line = (place.path, place.line) if place else ("unknown", 0)
    warnings.warn_explicit(text, SyncWarning, path, line, registry=warned)
