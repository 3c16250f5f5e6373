"""Part of a recording: some of its steps, with the device work that they launched."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.steps import steps
from syncscope.analysis.waits import launches
from syncscope.errors import UserError
from syncscope.model.trace import DEVICE, Kind, Trace


def only_steps(trace: Trace, first: int | None, last: int | None) -> Trace:
    """The trace of the steps numbered `first` up to, not including, `last`; None is the end on that side.

    What the host did at any time in them is kept whole, and of the device's work what these calls launched, however late
    it ran; work whose launch is not in the recording is kept where it ran in them.

    Raises:
        UserError: no step has such a number.
    """
    numbered = steps(trace, launches(trace))
    chosen = [s for s in numbered if (first is None or s.index >= first) and (last is None or s.index < last)]
    if not chosen:
        have = "no step is marked in it"
        if numbered:
            first_of, last_of = numbered[0].index, numbered[-1].index
            have = (
                f"it has the steps {first_of} to {last_of}" if first_of < last_of else f"it has step {first_of} alone"
            )
        raise UserError("the recording has none of the steps asked for", have)
    return between(trace, min(s.start for s in chosen), max(s.end for s in chosen))


def between(trace: Trace, begin: int, end: int) -> Trace:
    """The trace from the begin of a step to the end of another (ns), as `only_steps` keeps it."""
    inside = (trace.start < end) & (trace.end > begin)
    whole = (trace.start >= begin) & (trace.end <= end)
    work, calls = trace.rows(*DEVICE), trace.rows(Kind.CALL)
    number, called = trace.correlation[work], trace.correlation[calls]
    linked = (number >= 0) & _among(number, called)
    kept = inside & ((trace.kind != Kind.STEP) | whole)
    kept[work] = np.where(linked, _among(number, called[inside[calls]]), inside[work])
    return trace.take(kept)


def _among(numbers: NDArray[Any], known: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of them are known; nearly sorted numbers are searched for faster than `np.isin` sorts all of them."""
    if not len(known):
        return np.zeros(len(numbers), bool)
    known = np.sort(known, kind="stable")
    found: NDArray[np.bool_] = known[np.minimum(np.searchsorted(known, numbers), len(known) - 1)] == numbers
    return found
