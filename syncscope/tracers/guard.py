"""`forbid_syncs` and `allow_syncs`: a line that would make the host wait raises, or warns, before it waits.

What is forbidden belongs to the running context (contextvars): to this thread and this task, not to others.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import FrameType

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


class _Policy:
    """What holds from the beginning of a block on, in its context. `outer` held before it, and holds again after it."""

    def __init__(self, outer: _Policy | None, forbids: bool, warn: bool = False, advise: Advise | None = None) -> None:
        self.outer, self.forbids, self.warn, self.advise = outer, forbids, warn, advise
        self.over = False
        self.told: set[tuple[Place | None, str]] = set()  # what was warned of
        frame = sys._getframe(2)
        while frame.f_back is not None and frame.f_code.co_filename == contextlib.__file__:
            frame = frame.f_back
        # a generator that has yielded is not running, and what others do meanwhile is not its own
        self._generator = id(frame) if frame.f_code.co_flags & inspect.CO_GENERATOR else 0

    def holds(self) -> bool:
        """Whether the block has not ended, and is running."""
        if self.over or not self._generator:
            return not self.over
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and id(frame) != self._generator:
            frame = frame.f_back
        return frame is not None


_innermost: ContextVar[_Policy | None] = ContextVar("syncscope forbids", default=None)


@contextlib.contextmanager
def forbid_syncs(*, warn: bool = False, dry: bool | None = None, advise: Advise | None = None) -> Iterator[None]:
    """Inside, a read of a device tensor raises `SyncError` at its line, or warns once a line.

    `dry` treats tensors of the CPU that come from parameters and batches as a device's; None: where there is no device.
    `advise(op, place)` may say how to avoid it.
    """
    policy = _Policy(_innermost.get(), True, warn, advise)
    with _in_force(policy), listening(Listener(guard=_check, sync_debug=True)), dry_if(dry):
        yield


@contextlib.contextmanager
def allow_syncs(reason: str = "") -> Iterator[None]:
    """Inside, reads are allowed again; `reason` is for the reader of the code."""
    with _in_force(_Policy(_innermost.get(), False)):
        yield


@contextlib.contextmanager
def _in_force(policy: _Policy) -> Iterator[None]:
    token = _innermost.set(policy)
    try:
        yield
    finally:
        policy.over = True
        with contextlib.suppress(ValueError):  # a generator may end in another context than it began in
            _innermost.reset(token)


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
    __tracebackhide__ = True  # pytest ends at the line that waits
    policy = _innermost.get()
    while policy is not None and not policy.holds():
        policy = policy.outer
    if policy is None or not policy.forbids:
        return
    spot = reads.spot_of(seen)
    place, _ = places.resolve(spot) if spot else (None, -1)
    if policy.warn and (place, op) in policy.told:
        return
    text = f"{place or 'an unknown line'}: {op} makes the host wait for the device"
    if seen.library is not None and seen.user is not None:
        text += f" (in {places.short(seen.library)})"
    with allow_syncs("the advice may read as it likes"):
        advice = policy.advise(op, place) if policy.advise is not None and place is not None else ""
    text += f"\n hint: {advice}" if advice else ""
    if not policy.warn:
        raise SyncError(text, op, place)
    policy.told.add((place, op))
    path, line = (place.path, place.line) if place else ("unknown", 0)
    warnings.warn_explicit(text, SyncWarning, path, line)
