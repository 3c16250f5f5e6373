"""The compiled body of the OpenCL hook: built with the package where there was a compiler, else on first use and cached."""

from __future__ import annotations

import ctypes as c
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from syncscope.errors import UserError
from syncscope.native import built
from syncscope.tracers.opencl.abi import ABI, Hook

SOURCE = Path(__file__).with_name("icd.c")


@cache
def library() -> Any:
    """The hook: compiled, or in Python where that cannot be (`why_not()` says why); None where there are no such tables."""
    if sys.platform != "linux":
        _reasons.append(f"the dispatch tables of OpenCL are hooked on Linux only, not on {sys.platform}")
        return None
    try:
        if os.environ.get("SYNCSCOPE_HOOK") == "ctypes":
            raise OSError("SYNCSCOPE_HOOK asks for ctypes")
        return _open(built(SOURCE))
    except (OSError, UserError) as error:
        _reasons.append(f"no native hook ({str(error).splitlines()[0]})")
        from syncscope.tracers.opencl.fallback import Library

        return Library()


_reasons: list[str] = []


def observer(explain: Callable[[str, int, int, int], None]) -> Callable[..., None] | None:
    """A function in C for `observers` of kernels/queue.py that writes to the record file while the hook records; None without.

    `explain(name, start, end, how it ran)` is called after an operator that waited in the driver without a read.
    """
    found = library()
    if not isinstance(found, c.CDLL):
        return None
    make = c.PyDLL(found._name, handle=found._handle).new_observer  # the same library, called with the GIL held
    make.argtypes, make.restype = [c.py_object], c.py_object
    try:
        made: Callable[..., None] = make(explain)
    except ValueError:  # a null pointer: an interpreter without the names that it needs
        return None
    return made


def cycles_are_time() -> bool:
    """Whether CLOCK_MONOTONIC counts the processor's cycles, which are faster to read."""
    source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    return source.exists() and source.read_text().strip() == "tsc"


def why_not() -> str:
    """Why there is no compiled hook, in words; "" where there is one."""
    library()
    return "; ".join(_reasons)


def _open(path: Path) -> c.CDLL:
    found = c.CDLL(str(path))
    try:
        if found.abi() != ABI:
            raise OSError(f"{path} was built from another version")
    except AttributeError:
        raise OSError(f"{path} is not the hook") from None
    u64 = c.c_uint64
    found.hook_list.restype = c.POINTER(Hook)
    found.slot_list.restype = c.POINTER(Hook)
    found.add_table.argtypes = [c.c_void_p, c.c_void_p]
    found.start.argtypes = [c.c_int, u64, c.c_int]
    found.waits_of_this_thread.restype = c.POINTER(u64 * 2)
    found.settle.argtypes = [u64]
    found.settle.restype = None
    found.stop.argtypes = [u64]
    found.stop.restype = u64
    found.counts.argtypes = [c.POINTER(u64 * 7)]
    found.counts.restype = None
    found.loads.restype = u64
    found.ask_line.argtypes, found.ask_line.restype = [c.c_void_p], None
    found.arm.argtypes = [c.c_int]
    found.arm.restype = None
    return found


def functions() -> list[str]:
    """The hooked functions without their `cl`, by the number that a record holds."""
    found = library()
    if found is None:
        return []
    return [hook.name.decode() for hook in found.hook_list()[: found.number_of_hooks()]]


def counts() -> list[int]:
    """Records written, live events, what was lost (no disk, full ring, refused, too many handles), ns of device work."""
    found = (c.c_uint64 * 7)()
    hook = library()
    if hook is not None:
        hook.counts(c.byref(found))
    return list(found)
