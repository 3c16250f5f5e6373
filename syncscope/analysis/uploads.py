"""How fast a device fetches from pinned memory: what a copy from pageable memory would take, pinned."""

from __future__ import annotations

import re

import numpy as np

from syncscope.analysis.waits import FROM_PAGEABLE
from syncscope.model.trace import Kind, Trace

PINNED = 12.0  # bytes a ns: PCIe 3 with 16 lanes, the slowest that devices are still used with
LARGE = 1 << 20  # bytes of a copy that tells the bandwidth


def pinned_bandwidth(trace: Trace) -> float:
    """Bytes a ns (GB/s) that copies from pinned memory reach in this recording, by the median of the large ones.

    Where there are none, no less than copies from pageable memory reach, and than `PINNED`.
    """
    rows = trace.rows(Kind.COPY)
    rows = rows[(trace.bytes[rows] >= LARGE) & (trace.duration[rows] > 0)]
    rate = trace.bytes[rows] / trace.duration[rows]
    for source in (re.compile(r"Pinned -> Device"), FROM_PAGEABLE):
        of = np.array([bool(source.search(name)) for name in trace.names], bool)[trace.name[rows]]
        if of.any():
            return float(np.median(rate[of]) if source is not FROM_PAGEABLE else max(PINNED, rate[of].max()))
    return PINNED
