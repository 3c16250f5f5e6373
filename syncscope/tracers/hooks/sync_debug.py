"""Waits inside of CUDA's operators that no function of ours stands for: torch tells of each, at the line that called.

`torch.cuda.set_sync_debug_mode("warn")` has every operation of torch that waits send a Python warning, from the line whose
call it was, after the call. We take those warnings out before anybody sees them. What one of our own readers is noting is
known already; the rest (`torch.tensor(..., device=)`, an index on the host, `_grouped_mm`) is noted as MARK: a place and a
moment, which `sync_attribution` gives its operator. While a known read runs the mode is off, since a warning takes longer than
noting the read; it stays on once another thread's waits have been told of, which would be missed meanwhile. The waits of a
backward pass are told at its end, on the thread that called it.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from time import monotonic_ns
from typing import Any, SupportsIndex

from syncscope.tracers.hooks import reads
from syncscope.tracers.hooks.listeners import listeners
from syncscope.tracers.hooks.patches import patches
from syncscope.tracers.sync_attribution import MARK

SAYS = "called a synchronizing"  # CUDA operation, or HIP
WARN = 1  # of torch's modes: 0 says nothing, 2 raises
_told: set[int] = set()  # threads whose waits torch has told of


def install(torch: Any) -> None:
    """Switches the mode on and hears its warnings.

    For recordings, not for `watch`: an operator of C++ that Python does not call through torch has nowhere to send its
    warning but the program's stderr.
    """
    if not (torch.version.cuda or torch.version.hip) or not torch.cuda.is_available():
        return
    if torch.cuda.get_sync_debug_mode():
        return  # the program has chosen: its warnings, or its errors, are its own
    _on(torch)
    patches.later(_off, torch)
    reads.mute, reads.unmute = _switches(torch._C._cuda_get_sync_debug_mode, torch._C._cuda_set_sync_debug_mode)
    patches.replace(warnings, "filters", _Filters(warnings.filters))
    patches.replace(warnings, "_showwarnmsg", _showing(warnings._showwarnmsg))  # type: ignore[attr-defined]  # all come by


_said = False


def _on(torch: Any) -> None:
    """Torch tells the first who sets it that the mode is a prototype; keeping warnings back costs more than setting it."""
    global _said
    with contextlib.nullcontext() if _said else warnings.catch_warnings():
        if not _said:
            warnings.simplefilter("ignore")
        torch._C._cuda_set_sync_debug_mode(WARN)
    _said = True


def quiet(original: Callable[..., Any]) -> Callable[..., Any]:
    """`original` without these warnings: a read of ours stands for it, and its C++ would write them to stderr."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        torch = sys.modules["torch"]
        if not isinstance(warnings.filters, _Filters) or torch.cuda.get_sync_debug_mode() != WARN:
            return original(*args, **kwargs)
        torch._C._cuda_set_sync_debug_mode(0)
        try:
            return original(*args, **kwargs)
        finally:
            torch._C._cuda_set_sync_debug_mode(WARN)

    return call


def _switches(get: Callable[[], int], put: Callable[[int], None]) -> tuple[Callable[[], bool], Callable[[], None]]:
    """How a read has torch be quiet, if it may, and warn again: torch's own bare functions, for each read calls them."""

    def mute() -> bool:
        if get() != WARN or (_told and _told != {threading.get_ident()}):
            return False
        put(0)
        return True

    return mute, functools.partial(put, WARN)


def _off(torch: Any) -> None:
    reads.mute = reads.unmute = None
    _told.clear()
    if torch.cuda.get_sync_debug_mode() == WARN:
        torch._C._cuda_set_sync_debug_mode(0)


class _Filters(list[Any]):
    """The filters of warnings, with ours first whoever changes them: a program that ignores warnings, or raises them, is
    not to do so with ours."""

    OURS = ("always", re.compile(SAYS), UserWarning, None, 0)

    def __init__(self, filters: Iterable[Any] = ()) -> None:
        super().__init__([self.OURS, *(f for f in filters if f != self.OURS)])

    def insert(self, index: SupportsIndex, item: Any) -> None:
        super().insert(max(1, index.__index__()), item)

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return _Filters(found) if isinstance(index, slice) else found

    def __setitem__(self, index: Any, items: Any) -> None:
        super().__setitem__(index, _Filters(items) if isinstance(index, slice) else items)

    def __delitem__(self, index: Any) -> None:
        """As `warnings.resetwarnings` empties them from Python 3.14 on."""
        super().__delitem__(index)
        self[:] = self[:]


@functools.cache
def _showing(original: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(original)
    def show(message: Any) -> None:
        if str(message.message).startswith(SAYS):
            _heard()
        else:
            original(message)

    return show


def _heard() -> None:
    if reads.local.inside:
        return
    _told.add(threading.get_ident())
    own = sys._getframe(1)
    frame = own.f_back or own  # a thread of autograd may have no other
    seen = reads.here(frame)
    for guard in listeners.guards:
        guard(MARK, seen)
    if listeners.reads:
        now = monotonic_ns()
        reads.tell(MARK, frame, seen, now, now)
