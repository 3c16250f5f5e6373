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

from syncscope.analysis.waits import Launches, enqueued_before
from syncscope.model.report import Step
from syncscope.model.trace import Trace


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
