"""How fast a device fetches from pinned memory: what a copy from pageable memory would take, pinned."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.waits import FROM_PAGEABLE
from syncscope.model.trace import Kind, Trace

PINNED = 12.0  # bytes a ns: PCIe 3 with 16 lanes, the slowest that devices are still used with
LARGE = 1 << 20  # bytes of a copy that tells the bandwidth


def pinned_bandwidth(trace: Trace) -> float:
    """Bytes a ns (GB/s) that copies from pinned memory reach in this recording, by the median of the large ones.

    Where there are none, what was measured on that machine; else no less than copies from pageable memory reach, and than
    `PINNED`.
    """
    rows = trace.rows(Kind.COPY)
    rows = rows[(trace.bytes[rows] >= LARGE) & (trace.duration[rows] > 0)]
    rate = trace.bytes[rows] / trace.duration[rows]
    pinned = _rates(trace, rows, re.compile(r"Pinned -> Device"), rate)
    if len(pinned):
        return float(np.median(pinned))
    if measured := trace.meta.get("pinned"):
        return float(measured)
    return float(max(PINNED, _rates(trace, rows, FROM_PAGEABLE, rate).max(initial=0.0)))


def _rates(
    trace: Trace, rows: NDArray[np.intp], source: re.Pattern[str], rate: NDArray[np.float64]
) -> NDArray[np.float64]:
    of = np.array([bool(source.search(name)) for name in trace.names], bool)[trace.name[rows]]
    found: NDArray[np.float64] = rate[of]
    return found
