"""The orders between queues that a recording shows, whether or not anything made them wait.

```text
queue   [==A==]
other              [==B==]     B was enqueued after A and began when A was over: for A, or because the host had waited?
```

Where a recording shows how queues were made to wait for each other, that is known. Where it shows nothing of it, a replay in
which the host no longer waits may run A and B at once although they never were; a replay that keeps all these orders tells how
much depends on it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.start_causes import PASSING, DeviceWork


def seen(work: DeviceWork) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """`work.source` and `work.lag`; work without a source gets the work of another queue of its device that had just ended."""
    source, lag = work.source.copy(), work.lag.copy()
    of = [np.flatnonzero(work.queue == queue) for queue in range(work.queues)]
    for queue, mine in enumerate(of):
        before = np.concatenate(([-np.inf], work.start[mine[:-1]]))
        for other, theirs in enumerate(of):
            if other == queue or work.lanes[other].device != work.lanes[queue].device:
                continue
            over = np.searchsorted(np.maximum.accumulate(work.end[theirs]), work.start[mine], side="right")
            last = np.minimum(over, np.searchsorted(theirs, mine)) - 1
            awaited = np.where(last >= 0, theirs[np.maximum(last, 0)], -1)
            # what had ended when the predecessor began is in order by it
            new = (awaited >= 0) & (work.source[mine] < 0) & (work.end[awaited] > before)
            for j, k in zip(mine[new].tolist(), awaited[new].tolist(), strict=True):
                if source[j] < 0 or work.end[k] > work.end[source[j]]:
                    source[j], lag[j] = k, min(work.start[j] - work.end[k], PASSING)
    return source, lag
