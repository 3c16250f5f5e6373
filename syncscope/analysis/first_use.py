"""Calls of the driver that launch nothing, as what they are: memory, code, queues, and what a program does at first use.

```text
host   [cudaDeviceGetStreamPriorityRange......][cudaMalloc..]  [launch, the kernel is loaded...]  [launch]
        first use: the context is made          memory          first use, in a launch
```

A launch that is as long, of a kernel that was launched before, has loaded nothing: the driver, or the system, held it up.

The first call of a process makes the context, however little its name asks for: 30 s on a machine with eight A100. No graph of
launches, and no larger kernel, makes any of them shorter.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.intervals import Intervals, minus, union
from syncscope.analysis.start_causes import SLOWEST
from syncscope.analysis.waits import Launches, working_threads
from syncscope.model.trace import Kind, Trace


class DriverWork(StrEnum):
    """What a call asks the driver for, as its value in words."""

    MEMORY = "memory of the driver"
    KERNELS = "loading kernels"
    QUEUES = "making queues"
    CONTEXT = "first use: making the context"
    LOADED = "first use: a launch that loads its kernel"
    HELD = "a launch that was held up"
    LASTING = "a call that launches nothing"


class DriverCall(NamedTuple):
    """What is asked for, and by which call."""

    what: DriverWork
    call: str

    @property
    def words(self) -> str:
        """Both, as they are told."""
        return f"{self.what} ({self.call})"


# by a call's name; the first that fits
ASKED = (
    (re.compile(r"Malloc|Free(?!ze)|Alloc|MemCreate|MemMap|MemUnmap|MemAddress|HostRegister"), DriverWork.MEMORY),
    (re.compile(r"(?:Module|Library)(?:Load|Unload)|BuildProgram|CompileProgram"), DriverWork.KERNELS),
    (re.compile(r"(?:Stream|Event|CommandQueue)(?:Create|Destroy)|Create\w*CommandQueue"), DriverWork.QUEUES),
)
ONCE = (DriverWork.CONTEXT, DriverWork.LOADED)
TIMES = 50.0  # as long as the usual launch: then it is none, but what the first launch of a kernel has done, or who held it up
Rows = NDArray[np.intp]


def asked_times(trace: Trace, launched: Launches, waiting: Rows) -> dict[DriverCall, Intervals]:
    """When threads that launch were in calls that ask the driver for something else, by what that is and the call.

    Short ones that belong to launches (events, queries) are none of them: it takes over `SLOWEST`, or asks for memory, code or
    queues by its name. `waiting` are the calls that wait (rows).
    """
    calls = trace.rows(Kind.CALL)
    lanes = list(working_threads(trace, launched))
    calls = calls[np.isin(trace.lane[calls], lanes) & ~np.isin(calls, waiting)]
    launching = np.zeros(len(trace.names), bool)
    launching[trace.name[launched.call[launched.call >= 0]]] = True
    first = int(trace.start[launched.call[launched.call >= 0]].min(initial=np.iinfo(np.int64).max))
    others = calls[~launching[trace.name[calls]]]
    of: dict[DriverCall, list[int]] = {}
    named = {
        code: next((what for name, what in ASKED if name.search(trace.names[code])), None)
        for code in set(trace.name[others].tolist())
    }
    for row in others.tolist():
        code = int(trace.name[row])
        lasting = DriverWork.CONTEXT if trace.start[row] < first else DriverWork.LASTING
        if what := named[code] or (lasting if trace.duration[row] > SLOWEST else None):
            of.setdefault(DriverCall(what, trace.names[code]), []).append(row)
    loading = set(_first_launches(trace, launched).tolist())
    for row in long_launches(trace, launched, waiting).tolist():
        what = DriverWork.LOADED if row in loading else DriverWork.HELD
        of.setdefault(DriverCall(what, trace.names[trace.name[row]]), []).append(row)
    found: dict[DriverCall, Intervals] = {}
    nothing = np.zeros(0, np.int64)
    taken = union(nothing, nothing)
    for asked, rows in of.items():
        spans = union(trace.start[rows], trace.end[rows])
        found[asked] = minus(spans, taken)
        taken = union(np.append(taken.start, spans.start), np.append(taken.end, spans.end))
    return found


def long_launches(trace: Trace, launched: Launches, waiting: Rows) -> Rows:
    """The launches that are much longer than others, by their rows: what they do besides is no launch."""
    calls = np.unique(launched.call[launched.call >= 0])
    calls = calls[~np.isin(calls, waiting)]
    if not len(calls):
        return calls
    usual = float(np.quantile(trace.duration[calls], 0.5, method="lower"))
    found: Rows = calls[trace.duration[calls] > max(SLOWEST, TIMES * usual)]
    return found


def _first_launches(trace: Trace, launched: Launches) -> Rows:
    """Of each kernel the first, by their rows: in it, the driver loads the kernel, or makes what it needs."""
    known = (launched.call >= 0) & (trace.kind[launched.row] == Kind.KERNEL)
    calls, kernels = launched.call[known], trace.name[launched.row[known]]
    order = np.argsort(trace.start[calls], kind="stable")
    found: Rows = calls[order][np.unique(kernels[order], return_index=True)[1]]
    return found
