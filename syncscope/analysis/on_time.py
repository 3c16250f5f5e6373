"""Work as it had begun if what was late for no recorded reason had been so no more, or only behind its launch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.changes import After
from syncscope.analysis.graph import NEVER
from syncscope.analysis.hosts import Host
from syncscope.analysis.start_causes import Cause, DeviceWork


def on_time(
    work: DeviceWork, host: Host, late: After, source: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.intp]]:
    """Of each piece of work: how long after its launch it begins, how long after the work before it, ns, and for which other
    piece it waits, by number (-1: for none)."""
    latency, gap = work.latency, work.gap
    if late == "work":
        return latency, gap, source
    moved = (work.cause == Cause.NOTHING) & (latency > NEVER)
    if late == "launch":
        latency = np.where(moved, work.start - host.began[work.item], latency)
    else:
        latency = np.where(moved, np.minimum(latency, work.usual), latency)
        moved = work.cause == Cause.NOTHING
    return latency, np.where(moved, np.minimum(gap, work.usual_gap), gap), np.where(moved, -1, source)
