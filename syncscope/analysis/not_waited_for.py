"""Copies to the device for which the host did not wait, though on CUDA it may: OpenCL takes them over, and the host goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from syncscope.analysis.steps import alike
from syncscope.model.report import Step
from syncscope.model.trace import Flag, Kind, Trace

WRITES = {"clEnqueueWriteBuffer", "clEnqueueWriteBufferRect", "clEnqueueWriteImage"}
NAMED = 3  # lines


def uploads_not_waited_for(trace: Trace, steps: Sequence[Step]) -> str:
    """What a recording of OpenCL cannot say of copies to the device, and where they are; "" where its steps make none."""
    counted = [steps[n] for n in alike(steps)] if steps else []
    if not counted:
        return ""
    rows = trace.rows(Kind.CALL)
    writes = np.array([name in WRITES for name in trace.names], bool)
    rows = rows[writes[trace.name[rows]] & (trace.flags[rows] & Flag.BLOCKING == 0)]
    begun = trace.start[rows]
    rows = rows[np.any([(step.start <= begun) & (begun < step.end) for step in counted], axis=0)]
    if not len(rows):
        return ""
    lines = Counter(int(place) for place in trace.place[rows] if place >= 0).most_common()
    where = ", ".join(str(trace.places[place]) for place, _ in lines[:NAMED])
    more = f" and {len(lines) - NAMED} more lines" if len(lines) > NAMED else ""
    number = f"{len(rows) / len(counted):.3g}"
    said = "1 copy to the device per step is" if number == "1" else f"{number} copies to the device per step are"
    at = f" ({where}{more})" if where else ""
    return (
        f"{said} no sync here{at}: OpenCL takes it over; on CUDA the host waits for one from memory that is not pinned"
    )
