"""CUPTI as torch has loaded it, and the part of ours in C that writes down what it tells."""

from __future__ import annotations

import ctypes as c
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from syncscope.errors import UserError
from syncscope.native import built
from syncscope.tracers.lines import library as lines

SOURCE = Path(__file__).with_name("activities.c")
COPY, FILL, KERNEL, PEER_COPY, EVENT, SYNC = 1, 2, 10, 22, 36, 38  # CUPTI_ACTIVITY_KIND_...
KINDS = (KERNEL, COPY, PEER_COPY, FILL)
WAITS = (SYNC, EVENT)  # which queue a wait is for; dear, and needed only where queues wait for each other
DRIVER = 1  # CUPTI_CB_DOMAIN_DRIVER_API
MOST = 1024  # calls that it has
VERSION = re.compile(r"^_+|(_pt[sd][sz])?(_v\d+)?(_pt[sd][sz])?$")  # of a call
# Calls that ask a device for something, wait for it, or manage its memory; torch makes many more, around each kernel. They are
# heard where the driver gets them, whoever makes them: of a call of the runtime (cudaLaunchKernel) CUPTI would tell once more.
HEARD = re.compile(
    r"cu(Launch|Graph(Launch|Instantiate)|Memcpy|Memset|Mem(Alloc|Free|Host)|(Module|Library)Load|EventRecord|StreamWaitEvent"
    r"|(Ctx|Stream|Event)Synchronize)\w*"
)


class RefusedError(Exception):
    """CUPTI did not do what it was asked."""


@cache
def library() -> Any:
    """CUPTI, where it is in this process; else None."""
    try:
        found = re.search(r"/\S*libcupti\.so\S*", Path("/proc/self/maps").read_text())
    except OSError:
        return None
    return c.CDLL(found.group()) if found else None


@cache
def activities() -> Any:
    """Our part in C; None where it cannot be compiled."""
    try:
        ours = c.CDLL(str(built(SOURCE)))
    except (OSError, UserError):
        return None
    for address in (ours.requested_at, ours.completed_at, ours.called_at):
        address.restype = c.c_void_p
    ours.start.argtypes, ours.start.restype = [c.c_int, c.c_void_p], None
    ours.leave_by.argtypes, ours.leave_by.restype = [c.c_void_p], None
    ours.stop.restype = ours.lost_from.restype = c.c_uint64
    ours.ask_line.argtypes, ours.ask_line.restype = [c.c_void_p], None
    return ours


def _ask(name: str, *arguments: Any) -> None:
    """Calls a function of CUPTI.

    Raises:
        RefusedError: it says no.
    """
    code = getattr(library(), name)(*arguments)
    if code:
        text = c.c_char_p()
        library().cuptiGetResultString(code, c.byref(text))
        raise RefusedError(f"{name}: {(text.value or b'error').decode()}")


@cache
def heard() -> dict[int, str]:
    """The names of the calls of the driver that are listened to, by CUPTI's numbers, as programs write them."""
    found, name = {}, c.c_char_p()
    for number in range(1, MOST):
        if library().cuptiGetCallbackName(DRIVER, number, c.byref(name)) == 0 and name.value:
            found[number] = VERSION.sub("", name.value.decode())
    return {number: text for number, text in found.items() if HEARD.fullmatch(text)}


def now() -> int:
    """CUPTI's clock."""
    at = c.c_uint64()
    library().cuptiGetTimestamp(c.byref(at))
    return at.value


def start(file: int) -> Any:
    """Has what it tells written to this file from now on; what is returned, `stop` wants.

    Raises:
        RefusedError: somebody else listens to CUPTI, or it is of another age.
    """
    ours, subscriber = activities(), c.c_void_p()
    _ask("cuptiSubscribe", c.byref(subscriber), c.c_void_p(ours.called_at()), None)
    try:
        _ask("cuptiActivityRegisterCallbacks", c.c_void_p(ours.requested_at()), c.c_void_p(ours.completed_at()))
        ours.ask_line(lines.asked())
        ours.start(file, c.cast(library().cuptiActivityGetNextRecord, c.c_void_p))
        for kind in KINDS:
            _ask("cuptiActivityEnable", kind)
        for number in heard():
            _ask("cuptiEnableCallback", 1, subscriber, DRIVER, number)
    except (
        BaseException
    ):  # also a CUPTI that lacks a function: what has begun must not write into a file that is closed
        for kind in KINDS:
            library().cuptiActivityDisable(kind)
        library().cuptiUnsubscribe(subscriber)
        ours.stop()
        raise
    return subscriber


def hear_waits() -> bool:
    """Has CUPTI tell of waits as well, once a queue has been told to wait for another; whether it does."""
    if not activities().queues_wait():
        return False
    for kind in WAITS:
        library().cuptiActivityEnable(kind)
    return True


def settle() -> None:
    """Has everything written that it knows of."""
    library().cuptiActivityFlushAll(1)
    activities().settle()


def lost_from() -> int:
    """When the first record found no room on the disk, ns of CLOCK_MONOTONIC; 0 while none has."""
    ours = activities()
    return int(ours.lost_from()) if ours is not None else 0


def stop(subscriber: Any, call: Callable[[], object]) -> tuple[int, bool]:
    """Ends it; how many records found no room on the disk, and whether nothing of CUPTI is left.

    CUPTI leaves the process, within `call`, which synchronises the device: what is attached makes calls of the driver slower.
    """
    cupti, ours = library(), activities()
    for kind in (*KINDS, *WAITS):
        cupti.cuptiActivityDisable(kind)
    cupti.cuptiActivityFlushAll(1)
    ours.leave_by(c.cast(cupti.cuptiFinalize, c.c_void_p))
    call()
    left = bool(ours.has_left())
    if not left:
        cupti.cuptiUnsubscribe(subscriber)
    return int(ours.stop()), left
