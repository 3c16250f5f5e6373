"""What the host did not wait for, though on CUDA it may: OpenCL takes over copies to the device, and the host goes on; the
gradient of a selection by a mask needs no look for its rows on `ocl`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.steps import alike
from syncscope.model.commands import says_all
from syncscope.model.report import Step
from syncscope.model.trace import Flag, Kind, Trace

WRITES = {"clEnqueueWriteBuffer", "clEnqueueWriteBufferRect", "clEnqueueWriteImage"}
LAUNCH, PUT = "clEnqueueNDRangeKernel", "aten::_index_put_impl_"
# kernels of our device that put rows by their positions, or fill in a number
BY_NO_MASK = re.compile(r"index_put|where")
NAMED = 3  # lines


def not_waited_for(trace: Trace, steps: Sequence[Step]) -> list[str]:
    """What a recording of OpenCL cannot say of waits on CUDA, a sentence each."""
    said = uploads_not_waited_for(trace, steps), gradients_not_waited_for(trace, steps)
    return [each for each in said if each]


def uploads_not_waited_for(trace: Trace, steps: Sequence[Step]) -> str:
    """What a recording of OpenCL cannot say of copies to the device, and where they are; "" where its steps make none.

    What the CPU computed, as the device lacks the operator, goes back to it: a device that has the operator copies nothing.
    """
    rows = trace.rows(Kind.CALL)
    writes = np.array([name in WRITES for name in trace.names], bool)
    rows = rows[writes[trace.name[rows]] & (trace.flags[rows] & Flag.BLOCKING == 0)]
    operators = trace.rows(Kind.OP)
    on_cpu = operators[trace.flags[operators] & Flag.FALLBACK != 0]
    rows = rows[~_within(trace, rows, on_cpu)]
    number, at = _per_step(trace, steps, rows)
    if not number:
        return ""
    paths = dict.fromkeys(trace.places[place].path for place in trace.place[rows].tolist() if place >= 0)
    said = "1 copy to the device per step is" if number == "1" else f"{number} copies to the device per step are"
    return (
        f"{said} no sync here{at}: OpenCL takes it over; on CUDA the host waits for one from memory that is not pinned, and "
        f"{says_all(paths) if paths else '`syncscope lint`'} says what to write instead"
    )


def gradients_not_waited_for(trace: Trace, steps: Sequence[Step]) -> str:
    """How many gradients of selections by a mask a step puts back on our device, for each of which CUDA waits; "" where its
    steps have none. A write by a mask that waits is a read of the recording, and none of these.
    """
    calls = trace.rows(Kind.CALL)
    if not np.any(np.array([name == LAUNCH for name in trace.names], bool)[trace.name[calls]]):
        return ""
    ops, reads, kernels = trace.rows(Kind.OP), trace.rows(Kind.READ), trace.rows(Kind.KERNEL)
    ops = ops[np.array([name == PUT for name in trace.names], bool)[trace.name[ops]]]
    ops = ops[~_within(trace, ops, reads)]
    others = kernels[np.array([bool(BY_NO_MASK.match(name)) for name in trace.names], bool)[trace.name[kernels]]]
    launched = calls[np.isin(trace.correlation[calls], trace.correlation[others]) & (trace.correlation[calls] >= 0)]
    by_mask = [row for row in ops.tolist() if not _within(trace, launched, np.array([row], np.intp)).any()]
    number, at = _per_step(trace, steps, np.array(by_mask, np.intp))
    if not number:
        return ""
    one = number == "1"
    said = f"{number} gradient{'' if one else 's'} of {'a selection' if one else 'selections'} by a mask per step"
    return (
        f"{said} {'is' if one else 'are'} no sync here{at}: the device knows the rows; on CUDA the backward pass waits "
        "for each"
    )


def _within(trace: Trace, rows: NDArray[np.intp], around: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Of each row whether it begins within one of the others, on the same thread."""
    found = np.zeros(len(rows), bool)
    for lane in np.unique(trace.lane[around]).tolist():
        its = around[trace.lane[around] == lane]
        its = its[np.argsort(trace.start[its])]
        at = np.searchsorted(trace.start[its], trace.start[rows], "right") - 1
        found |= (trace.lane[rows] == lane) & (at >= 0) & (trace.start[rows] < trace.end[its[at]])
    return found


def _per_step(trace: Trace, steps: Sequence[Step], rows: NDArray[np.intp]) -> tuple[str, str]:
    """How many of these rows are in a counted step, "" where none is, and their lines, the most frequent first."""
    counted = [steps[n] for n in alike(steps)] if steps else []
    begun = trace.start[rows]
    rows = (
        rows[np.any([(step.start <= begun) & (begun < step.end) for step in counted], axis=0)] if counted else rows[:0]
    )
    if not len(rows):
        return "", ""
    lines = Counter(int(place) for place in trace.place[rows] if place >= 0).most_common()
    where = ", ".join(str(trace.places[place]) for place, _ in lines[:NAMED])
    more = f" and {len(lines) - NAMED} more lines" if len(lines) > NAMED else ""
    return f"{len(rows) / len(counted):.3g}", f" ({where}{more})" if where else ""
