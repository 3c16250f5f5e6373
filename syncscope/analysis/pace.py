"""How fast the host was in one recording beside another: the calls of the driver that both make, and what they took."""

from __future__ import annotations

import math

import numpy as np

from syncscope.model.trace import Flag, Kind, Trace

FEWEST = 10  # calls of a name from which their median is believed


def pace(before: Trace, after: Trace) -> float:
    """So many times as long such a call takes in the second recording: calls that wait for nothing, by name, the usual of
    each. 1.0 where no name has enough of them in both."""
    one, other = _usual(before), _usual(after)
    both = sorted(one.keys() & other.keys())
    if not both:
        return 1.0
    weights = [min(one[name][1], other[name][1]) for name in both]
    return math.exp(np.average([math.log(other[name][0] / one[name][0]) for name in both], weights=weights))


def _usual(trace: Trace) -> dict[str, tuple[float, int]]:
    """The median of the calls of each name, ns, and how many there are."""
    counted = (trace.kind == Kind.CALL) & ((trace.flags & Flag.BLOCKING) == 0)
    names, lengths = trace.name[counted], trace.duration[counted]
    found = {}
    for number in np.unique(names).tolist():
        name, each = trace.names[number], lengths[names == number]
        if len(each) >= FEWEST and "ynchronize" not in name:
            found[name] = max(1.0, float(np.median(each))), len(each)
    return found
