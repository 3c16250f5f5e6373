"""How fast the host was in one recording beside another: the calls of the driver that both make, and what they took."""

from __future__ import annotations

import numpy as np

from syncscope.model.trace import Flag, Kind, Trace

FEWEST = 10  # calls of a name from which their usual length is believed
LONGEST = 100_000  # ns: what usually takes longer copies, makes memory or waits, and does not go by the host's speed


def pace(before: Trace, after: Trace) -> float:
    """So many times as long such calls take in the second recording: calls that wait for nothing, of each name the usual length
    and as many as both have. 1.0 where no name has enough of them in both.

    Times are added, not ratios: a call that takes 0 or 1 us by a clock of whole microseconds counts for as little as it takes.
    """
    one, other = _usual(before), _usual(after)
    both = [name for name in one.keys() & other.keys() if min(one[name][0], other[name][0]) <= LONGEST]
    counts = {name: min(one[name][1], other[name][1]) for name in both}
    took = [sum(count * found[name][0] for name, count in counts.items()) for found in (one, other)]
    return took[1] / took[0] if min(took) > 0 else 1.0


def _usual(trace: Trace) -> dict[str, tuple[float, int]]:
    """The mean of the middle half of the calls of each name, ns, and how many there are.

    A median has only the values of the clock: 9 and 10 us where 9.4 and 9.6 is meant.
    """
    counted = (trace.kind == Kind.CALL) & ((trace.flags & Flag.BLOCKING) == 0)
    names, lengths = trace.name[counted], trace.duration[counted]
    found = {}
    for number in np.unique(names).tolist():
        name, each = trace.names[number], np.sort(lengths[names == number])
        if len(each) >= FEWEST and "ynchronize" not in name:
            found[name] = float(each[len(each) // 4 : len(each) - len(each) // 4].mean()), len(each)
    return found
