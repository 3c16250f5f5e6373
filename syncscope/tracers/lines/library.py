"""The part in C that says which line runs on a thread, and what its numbers mean.

```text
    a call of the driver       opencl/icd.c or cupti/activities.c hears it, and asks `asked()`: three numbers in 64 bits
      frames.h                 the frames that run on this thread, innermost first
      codes.h                  whose code each is; the number of the line, which is written down when it is met first
      autograd.h               on autograd's threads: the line that called backward, and the one whose gradient it is
    python_events              hands the texts of the numbers to the builder, before others add what names them
```
"""

from __future__ import annotations

import atexit
import ctypes as c
import sysconfig
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncscope.errors import UserError
from syncscope.model.source import Place
from syncscope.native import built
from syncscope.tracers import places

SOURCE = Path(__file__).with_name("lines.c")
BITS = 20  # of each number, as in lines.c


@cache
def library() -> Any:
    """The compiled part, called with the GIL held; None without a compiler, or for an interpreter whose frames nobody knows."""
    try:
        found = c.PyDLL(str(built(SOURCE, f"-I{sysconfig.get_path('include')}")))
    except (OSError, UserError) as error:
        _reasons.append(str(error))
        return None
    found.asked_at.restype = c.c_void_p
    found.here.restype = c.c_uint64
    found.start.argtypes, found.start.restype = [c.c_int, c.c_char_p], None
    found.fits.argtypes = [c.c_void_p, c.c_int, c.c_uint64, c.c_void_p]
    found.know_torch.argtypes = [c.c_void_p, c.c_void_p]
    for ends in (found.stop, found.leave_torch, found.pass_ends):
        ends.restype = None
    atexit.register(found.stop)  # afterwards, frames of other threads are taken down
    return found


_reasons: list[str] = []


def why_not() -> str:
    """Why there are no lines, in words; "" where there are."""
    return "; ".join(_reasons) if library() is None else ""


def start(handle: int) -> None:
    """From now on there are numbers, each written to this file when it is met first."""
    if library() is not None:
        library().start(handle, "".join(f"\n{path}" for path in places.carriers()).encode() + b"\n")


def stop() -> None:
    """No more."""
    if library() is not None:
        library().stop()


def asked() -> int | None:
    """The address of what says which line runs: `unpacked` tells its numbers apart."""
    return library().asked_at() if library() is not None else None


def unpacked(at: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The numbers of places, callers and forward lines; 0 is none."""
    return [at >> shift & (1 << BITS) - 1 for shift in (0, BITS, 2 * BITS)]


def ways(at: NDArray[np.int64]) -> NDArray[np.int64]:
    """By which call in torch's own Python the line came to it: 1 to 15, 0 where it came by none, or none is known."""
    return at >> 3 * BITS & 15


def known(texts: Mapping[int, str]) -> dict[int, tuple[Place, str]]:
    """The places that the numbers of a recording mean, and the functions in which they stand."""
    return {number: of(text) for number, text in texts.items()}


def of(text: str) -> tuple[Place, str]:
    """The place and the function that a name says: `train.py:42`, and in another line `Trainer.step`."""
    where, _, function = text.rpartition("\n")
    path, _, line = where.rpartition(":")
    return Place(places.direct(path), int(line)), shown(function)


def shown(function: str) -> str:
    """A function as people know it, by its qualified name: a comprehension is a part of the one around it."""
    for made in ("listcomp", "setcomp", "dictcomp", "genexpr"):
        function = function.removesuffix(f".<locals>.<{made}>").removesuffix(f"<{made}>")
    return function
