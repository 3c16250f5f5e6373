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

LOOKED_AT = 64  # works that ended last, among which one is looked for


def seen(work: DeviceWork) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """`work.source` and `work.lag`; work without a source gets the work of another queue of its device that had just ended."""
    source, lag = work.source.copy(), work.lag.copy()
    order = np.argsort(work.queue, kind="stable")
    of = np.split(order, np.searchsorted(work.queue[order], np.arange(1, work.queues)))
    over = np.empty(len(work.end))  # when a work and all before it in its queue were over
    for mine in of:
        over[mine] = np.maximum.accumulate(work.end[mine])
    devices = [lane.device for lane in work.lanes]
    for device in dict.fromkeys(devices):
        own = [queue for queue, at in enumerate(devices) if at == device]
        theirs = np.concatenate([of[queue] for queue in own])
        theirs = theirs[np.argsort(over[theirs], kind="stable")]
        ended, queues = over[theirs], work.queue[theirs]
        for mine in (of[queue] for queue in own):
            before = np.concatenate(([-np.inf], work.start[mine[:-1]]))
            upto = np.searchsorted(ended, work.start[mine], side="right")
            for j, at, since in zip(mine.tolist(), upto.tolist(), before.tolist(), strict=True):
                if work.source[j] >= 0:
                    continue
                # what had ended when the predecessor began is in order by it
                for place in range(at - 1, max(-1, at - 1 - LOOKED_AT), -1):
                    if ended[place] <= since:
                        break
                    k = int(theirs[place])
                    if k < j and queues[place] != work.queue[j] and work.end[k] > since:
                        source[j], lag[j] = k, min(work.start[j] - work.end[k], PASSING)
                        break
    return source, lag
