"""What the device did in the counted steps: its kernels, its operators, and how near they come to what it can do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.modules import modules
from syncscope.analysis.roofline import Ceilings, by_operator
from syncscope.analysis.steps import alike
from syncscope.analysis.waits import launches
from syncscope.model.report import Step
from syncscope.model.trace import DEVICE, Kind, Trace
from syncscope.model.work import KernelLine, OperatorLine, Work

UNKNOWN = Ceilings(np.inf, np.inf)  # of these nothing is ever reached


def work_done(trace: Trace, steps: Sequence[Step], ceilings: Ceilings | None = None, source: str = "") -> Work:
    """The work that began in the counted steps (in the whole recording without steps), per step.

    Without `ceilings` no operator is held against any.
    """
    counted = [steps[n] for n in alike(steps)] or list(steps)
    work = np.isin(trace.kind, DEVICE) & np.array([lane.device >= 0 for lane in trace.lanes], bool)[trace.lane]
    kept = np.ones(len(trace), bool)
    if counted:
        kept = ~work | ((trace.start >= counted[0].start) & (trace.start < counted[-1].end))
    number = max(1, len(counted))
    part = trace.take(kept)
    known = ceilings or UNKNOWN
    operators = tuple(
        OperatorLine(
            *(row.op, row.shapes, row.count / number, row.time / number, row.flops / number, row.bytes / number),
            *(row.bound, row.reached, tuple(name for name, _ in row.kernels), row.arithmetic, row.why),
        )
        for row in by_operator(replace(part, meta=trace.meta), known)
    )
    kernels = tuple(sorted(_kernels(trace, np.flatnonzero(work & kept), number), key=lambda line: -line.time))
    by_module = modules(trace, launches(trace), kept, number)
    if ceilings is None:
        return Work(kernels, operators, modules=by_module)
    return Work(kernels, operators, **asdict(ceilings), source=source, modules=by_module)


def _kernels(trace: Trace, rows: NDArray[np.intp], number: int) -> Iterable[KernelLine]:
    names, group = np.unique(trace.name[rows], return_inverse=True)
    time = np.bincount(group, trace.duration[rows], len(names))
    longest = np.zeros(len(names), np.int64)
    np.maximum.at(longest, group, trace.duration[rows])
    kinds = np.zeros(len(names), np.uint8)
    kinds[group] = trace.kind[rows]
    columns = (names, kinds, np.bincount(group, minlength=len(names)), time, longest)
    for name, kind, count, ns, most in zip(*(c.tolist() for c in columns), strict=True):
        yield KernelLine(trace.names[name], Kind(kind).name.lower(), count / number, ns / number, most)
