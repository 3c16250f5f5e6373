"""Device work that was enqueued before the recording began, and where the first step begins behind it.

A profiler starts while the host is ahead, so the device still has work of earlier steps; of its launches none is recorded.

```text
host                [launch a]..[launch b]..|      the host's first step begins long before the device's
queue  [==y==][=====z=====][==a==][==b==]
                           |<- first step ->|
```
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.waits import Launches
from syncscope.model.report import Step
from syncscope.model.trace import Trace

NEVER = np.iinfo(np.int64).max  # ns, of a queue of which no launch was recorded


def enqueued_before(trace: Trace, launched: Launches) -> NDArray[np.bool_]:
    """Which work was enqueued before the recording: in its queue all whose launch was recorded comes later, and the host
    launched already while it ran.

    Where the host launched later, the device was not behind it, and launches may have been lost. Of a queue of which no launch
    was recorded nobody can tell.
    """
    known = launched.call >= 0
    if known.all() or not known.any():
        return np.zeros(len(known), bool)
    lane, start = trace.lane[launched.row], trace.start[launched.row]
    first = np.full(len(trace.lanes), NEVER)
    np.minimum.at(first, lane[known], start[known])
    found: NDArray[np.bool_] = ~known & (start < first[lane]) & (first[lane] < NEVER)
    over = trace.end[launched.row[found]].max(initial=0)
    return found & bool(trace.start[launched.call[known]].min() < over)


def first_step_began(trace: Trace, launched: Launches, steps: Sequence[Step], ended: Sequence[float]) -> int | None:
    """When the device came to the first step, ns of the trace, where it had work enqueued before the recording; else None.

    `ended` is when each step had, on host and device. What was enqueued before is over by the end of the first step; what is
    not has lost its launch in the recording.
    """
    before = launched.row[enqueued_before(trace, launched)]
    if not (len(before) and steps):
        return None
    over = int(trace.end[before].max())
    return max(over, steps[0].start) if over < ended[0] else None
