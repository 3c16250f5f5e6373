"""CUPTI as torch has loaded it, and the part of ours in C that writes down what it tells."""

from __future__ import annotations

import ctypes as c
import re
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from syncscope.errors import UserError
from syncscope.tracers.opencl import compiled

SOURCE = Path(__file__).with_name("activities.c")
COPY, FILL, DRIVER, RUNTIME, KERNEL, PEER_COPY, EVENT, SYNC = 1, 2, 4, 5, 10, 22, 36, 38  # CUPTI_ACTIVITY_KIND_...
KINDS = (KERNEL, COPY, PEER_COPY, FILL, SYNC, EVENT, RUNTIME, DRIVER)
CALLS = {DRIVER: 1, RUNTIME: 2}  # CUPTI_CB_DOMAIN_..., by the kind of its calls
MOST = 1024  # calls that an interface has
SYSTEM, POSIX = 1, 0  # CUPTI_ACTIVITY_THREAD_ID_TYPE_...: what threads are called; the second unless told otherwise
# Calls that ask the device for nothing and that torch makes around every kernel: telling of them costs as much as of a launch.
QUIET = re.compile(
    r"cuda(GetDevice|SetDevice|GetLastError|PeekAtLastError|DeviceGetAttribute|FuncGetAttributes|FuncSetAttribute|EventCreate"
    r"|EventCreateWithFlags|EventDestroy|EventQuery|StreamIsCapturing|StreamGetCaptureInfo|ThreadExchangeStreamCaptureMode"
    r"|PointerGetAttributes|Occupancy\w*)"
)
# What is heard of the driver's own interface, which Triton and libraries use; what the runtime calls in turn is not told again.
HEARD = re.compile(
    r"cu(Launch\w*|GraphLaunch|Memcpy\w*|Memset\w*|(Ctx|Stream|Event)Synchronize|EventRecord|StreamWaitEvent)(_v\d)?(_pt[ds][sz])?"
)
VERSION = re.compile(r"^_+|(_ptsz)?_v\d+$")  # of the runtime's interface


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
        ours = c.CDLL(str(compiled.built(SOURCE)))
    except (OSError, UserError, subprocess.CalledProcessError):
        return None
    ours.requested_at.restype = ours.completed_at.restype = ours.called_at.restype = c.c_void_p
    ours.leave_by.argtypes, ours.leave_by.restype = [c.c_void_p], None
    ours.start.argtypes, ours.start.restype = [c.c_int, c.c_void_p], None
    ours.stop.restype = c.c_uint64
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
def calls(kind: int) -> dict[int, str]:
    """The names of DRIVER's or RUNTIME's calls by CUPTI's numbers, as programs write them."""
    found, name = {}, c.c_char_p()
    for number in range(1, MOST):
        if library().cuptiGetCallbackName(CALLS[kind], number, c.byref(name)) == 0 and name.value:
            found[number] = VERSION.sub("", name.value.decode())
    return found


def now() -> int:
    """CUPTI's clock."""
    at = c.c_uint64()
    library().cuptiGetTimestamp(c.byref(at))
    return at.value


def start(file: int) -> None:
    """Has what it tells written to this file from now on.

    Raises:
        RefusedError: somebody else has CUPTI, or it is of another age.
    """
    ours = activities()
    _ask("cuptiActivityRegisterCallbacks", c.c_void_p(ours.requested_at()), c.c_void_p(ours.completed_at()))
    ours.start(file, c.cast(library().cuptiActivityGetNextRecord, c.c_void_p))
    _ask("cuptiSetThreadIdType", SYSTEM)
    for kind in KINDS:
        _ask("cuptiActivityEnable", kind)
    for number, name in calls(RUNTIME).items():
        if QUIET.fullmatch(name):
            _ask("cuptiActivityEnableRuntimeApi", number, 0)
    for number, name in calls(DRIVER).items():
        if not HEARD.fullmatch(name):
            _ask("cuptiActivityEnableDriverApi", number, 0)


def flush() -> None:
    """Has everything that it knows of written."""
    _ask("cuptiActivityFlushAll", 1)


def stop() -> int:
    """Ends it; how many records found no room on the disk."""
    for kind in KINDS:
        library().cuptiActivityDisable(kind)
    library().cuptiSetThreadIdType(POSIX)
    library().cuptiActivityFlushAll(1)
    return int(activities().stop())


def detach(call: Callable[[], object]) -> bool:
    """Has CUPTI leave the process: while it is attached each call of the driver takes longer, recorded or not.

    It does so within `call`, which synchronises the device. False: somebody else listens to it, and it stays.
    """
    cupti, ours, subscriber = library(), activities(), c.c_void_p()
    number = next((number for number, name in calls(RUNTIME).items() if name == "cudaDeviceSynchronize"), None)
    if number is None or cupti.cuptiSubscribe(c.byref(subscriber), c.c_void_p(ours.called_at()), None):
        return False
    ours.leave_by(c.cast(cupti.cuptiFinalize, c.c_void_p))
    if cupti.cuptiEnableCallback(1, subscriber, CALLS[RUNTIME], number):
        cupti.cuptiUnsubscribe(subscriber)
        return False
    call()
    return True
