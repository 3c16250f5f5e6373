"""Puts a device's clock onto the host's: CLOCK_MONOTONIC, ns.

Three sources. The driver's own timer (`clGetDeviceAndHostTimer`), read between two readings of our clock: the device's time
lies between them. Else the QUEUED stamp of each command, which the driver took while the call that enqueued it ran: the
offset lies in [max(QUEUED - t1), min(QUEUED - t0)], and above END - t1 where the call waited for the command. Both are taken
again and again, so that drift shows: CLOCK_MONOTONIC_RAW, for example, is not slewed by NTP. And regions of the host that
both clocks have seen: torch.profiler's clock is a counter of the processor, put onto the wall clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]
WINDOWS = 32  # of a recording, each with an offset of its own
ENOUGH = 64  # commands that a window needs
TOLERANCE = 500  # ns by which our own readings may be wrong


@dataclass(frozen=True, slots=True)
class Clock:
    """Device time minus host time at some moments of the device's clock; between them the offset runs straight."""

    at: Times
    offset: Times  # whole ns: a float has not enough digits for ns since 1970
    uncertainty: float  # ns, half the width of the widest window
    source: str

    def to_host(self, device: Times) -> Times:
        """Device stamps as host times."""
        if not len(self.at):
            return device
        change: NDArray[np.float64] = np.interp(device - self.at[0], self.at - self.at[0], self.offset - self.offset[0])
        moved: Times = device - self.offset[0] - np.rint(change).astype(np.int64)
        return moved

    @property
    def drift(self) -> float:
        """How fast the device's clock runs away from the host's, ns per second."""
        if len(self.at) < 2 or self.at[-1] <= self.at[0]:
            return 0.0
        return float((self.offset[-1] - self.offset[0]) / (self.at[-1] - self.at[0]) * 1e9)

    def facts(self) -> dict[str, Any]:
        """What is stored with a trace."""
        return {
            "source": self.source,
            "offset_ns": int(self.offset[0]) if len(self.offset) else 0,
            "uncertainty_ns": round(self.uncertainty),
            "drift_ns_per_s": round(self.drift, 3),
        }


def from_timer(device: Times, before: Times, after: Times) -> Clock:
    """From readings of the driver's timer, each between two readings of ours."""
    order = np.argsort(device)
    middle = (before + (after - before) // 2)[order]
    return Clock(device[order], device[order] - middle, float((after - before).max() / 2), "timer")


def from_regions(start: Times, end: Times, before: Times, after: Times) -> Clock:
    """From regions of the other clock, in order, each recorded between two readings of ours.

    The offset lies in [end - after, start - before] of every region; the narrowest say most.
    """
    low, high = end - after, start - before
    if low.max() <= high.min() + TOLERANCE:  # one offset explains every region
        middle = low.max() + (high.min() - low.max()) // 2
        return Clock(start[:1], np.array([middle]), abs(float(high.min() - low.max())) / 2, "anchor")
    at, offset, width = [], [], []
    for rows in np.array_split(np.arange(len(start)), min(WINDOWS, len(start))):
        best = rows[np.argmin((high - low)[rows])]
        at.append(int(start[best]))
        offset.append(int(low[best] + (high[best] - low[best]) // 2))
        width.append(float(high[best] - low[best]) / 2)
    return Clock(np.array(at), np.array(offset), max(width), "anchor")


def from_brackets(queued: Times, before: Times, after: Times, latest: Times | None = None) -> Clock:
    """From the QUEUED stamps of commands and the host times of the calls that enqueued them.

    `latest` is the last stamp that was taken before the call returned: END where the call waited for the command.
    """
    known = queued > 0  # some drivers leave it 0 for some commands
    latest = (queued if latest is None else latest)[known]
    queued, before, after = queued[known], before[known], after[known]
    if not len(queued):
        return Clock(np.zeros(0, np.int64), np.zeros(0, np.int64), 0.0, "none")
    low, high = (latest - after).max(), (queued - before).min()
    if low <= high + TOLERANCE:  # one offset explains every command
        return Clock(queued[:1], np.array([low + (high - low) // 2]), abs(float(high - low)) / 2, "bracket")
    edges = np.linspace(0, len(queued), max(2, min(WINDOWS, len(queued) // ENOUGH) + 1)).astype(int)
    order = np.argsort(queued)
    at, offset, width = [], [], []
    for first, last in pairwise(edges.tolist()):
        rows = order[first:last]
        low, high = (latest[rows] - after[rows]).max(), (queued[rows] - before[rows]).min()
        at.append(int(queued[rows[len(rows) // 2]]))
        offset.append(int(low + (high - low) // 2))
        width.append(abs(float(high - low)) / 2)
    return Clock(np.array(at), np.array(offset), max(width), "bracket")
