"""Where the device stands still for as long in every step, before the same work, and nothing that was recorded says why.

```text
stream 7   [K][K]..........[ Memset ][K][K]..........[ Memset ][K]
           |<------- step -------->|<------- step -------->|
```

What comes again in every step is no chance: a machine with nothing else to do changes nothing of it. The device waits there for
what was not recorded.
"""

from __future__ import annotations

import numpy as np

from syncscope.analysis.event_graph import EventGraph
from syncscope.analysis.start_causes import Cause
from syncscope.model.durations import about_ms

FEWEST = 3  # steps in which it must be so
MUCH = 0.1  # the part of a step that the device must stand still there
ALIKE = 1.25  # times as long in one step as in another, at most


def recurring(event_graph: EventGraph) -> str:
    """Before which work, and for how long, in a sentence; "" where there is none such."""
    work, trace, steps = event_graph.device_work, event_graph.trace, event_graph.steps
    late = np.where(work.cause == Cause.NOTHING, work.late, 0.0)
    found: list[tuple[float, str]] = []
    for step in steps:
        begin, end = (moment - event_graph.host.origin for moment in (step.start, step.end))
        inside = np.where((work.start >= begin) & (work.start < end), late, 0.0)
        worst = int(np.argmax(inside)) if len(inside) else -1
        if worst < 0 or inside[worst] < MUCH * (end - begin):
            return ""
        named = f"`{trace.names[trace.name[work.row[worst]]]}` on {work.lanes[work.queue[worst]].label.strip()}"
        found.append((float(inside[worst]), named))
    times = [time for time, _ in found]
    if len(found) < FEWEST or len({named for _, named in found}) > 1 or max(times) > ALIKE * min(times):
        return ""
    return (
        f"in each of {len(found)} steps the device stands still for {about_ms(min(times))} to {about_ms(max(times))} before "
        f"{found[0][1]}"
    )
