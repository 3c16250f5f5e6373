"""Waits that no recorded call explains: a thread was silent, and went on just as the device had done all.

```text
host   [launch]..........silence..........[next event]
queue      [=======================]
                                   |<---->|  REACH: by chance so short after the work in few silences only
```

A call that waits and is not in the file, or is not known to wait, leaves such silences. Any one may be chance: of silences of
length L, the device being done at any moment of them, REACH / L end so soon after it. What exceeds chance was waited for. The
steps of a loop are alike, and so are their chances: silences after the same event count as one throw of the dice.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.intervals import covered, union
from syncscope.model.trace import Kind, Trace, numbers_used

REACH = 20_000  # ns from the end of the device's work to the next event of a host that waited for it,
AHEAD = 3_000  # and before it, by clocks that disagree
SHORT = 40_000  # ns: a host that does its own work is silent for so long, too
SURE = 3.0  # standard deviations
Times = NDArray[np.float64]


def unrecorded_waits(
    trace: Trace, lanes: Iterable[int], waits: NDArray[np.intp], work: tuple[Times, Times, Times, NDArray[np.int32]]
) -> dict[int, tuple[Times, Times]]:
    """By lane: begin and end (ns of the trace) of the silences that ended as the device was done; none where it may be chance.

    `waits` are the rows of the calls that are known to wait; `work` is when each piece of device work was enqueued, when it
    began and ended (ns of the trace), and its queue, in the order of enqueueing. Only silences in which the device worked are
    looked at: a launch that loads its kernel first takes long, too.
    """
    launched, starts, ends, queue = work
    worked = union(starts.astype(np.int64), ends.astype(np.int64))
    queues = []
    for number in numbers_used(queue):
        of = queue == number
        queues.append((np.maximum.accumulate(launched[of]), np.maximum.accumulate(ends[of])))
    found = {}
    kinds = trace.rows(Kind.OP, Kind.ANNOTATION, Kind.PYTHON, Kind.CALL, Kind.READ)
    for lane in lanes:
        rows = kinds[trace.lane[kinds] == lane]
        if not len(rows):
            continue
        times = np.concatenate([trace.start[rows], trace.start[rows] + trace.duration[rows]])
        times.sort()
        long = np.flatnonzero(np.diff(times) >= SHORT)
        begin, end = times[long].astype(float), times[long + 1].astype(float)
        told = waits[trace.lane[waits] == lane]
        over = np.concatenate(([-1], np.maximum.accumulate(trace.start[told] + trace.duration[told])))
        waiting = over[np.searchsorted(trace.start[told], begin, side="right")] >= end
        busy = 2 * covered(worked, begin.astype(np.int64), end.astype(np.int64)) > end - begin
        begin, end = begin[~waiting & busy], end[~waiting & busy]
        drained, prompt = np.zeros(len(begin), bool), np.zeros(len(begin), bool)
        for since, reach in queues:
            before = np.searchsorted(since, begin, side="right")
            done = np.where(before > 0, np.append(reach, 0)[before - 1], -np.inf)
            within = (done > begin + SHORT / 2) & (done <= end + AHEAD)
            drained |= within
            prompt |= within & (done >= end - REACH)
        length = (end - begin)[drained]
        chance = np.minimum(1.0, (REACH + AHEAD) / (length - SHORT / 2))
        expected = float((chance * length).sum())
        after = trace.name[rows[np.searchsorted(trace.start[rows], begin[drained], side="right") - 1]]
        _, place = np.unique(after, return_inverse=True)
        doubt = float((np.bincount(place, (chance * (1 - chance)) ** 0.5 * length) ** 2).sum()) ** 0.5
        if float((end - begin)[prompt].sum()) > expected + SURE * doubt:
            found[int(lane)] = begin[prompt], end[prompt]
    return found
