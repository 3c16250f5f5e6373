"""Steps of which a recording lost what the host asked of the device, as a profiler does whose buffer ran full.

They look as if the device had nothing to do: the operators are there, and nothing that they launch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from syncscope.model.report import Step
from syncscope.model.trace import Kind, Trace

FEWEST = 5  # calls that are missing in a step, of which it is believed
LEFT = 0.5  # of the calls that a step's operators make in other steps: one with fewer lost them
BESIDE = 0.9  # the same of a step before or after such a one, in which the loss began or ended


def lost_steps(trace: Trace, steps: Sequence[Step]) -> tuple[bool, ...]:
    """Of each step whether the driver's calls, which its operators make in other steps, are missing in it.

    A step whose operators are others, as one that computes on the processor alone, lost nothing.
    """
    ops, makes = _calling(trace)
    made = trace.name[ops[makes]]
    if len(steps) < 2 or not len(made):
        return (False,) * len(steps)
    size = len(trace.names)
    begins, ends = (np.array([getattr(step, end) for step in steps], np.int64) for end in ("start", "end"))
    position = np.searchsorted(begins, trace.start[ops], "right") - 1
    within = (position >= 0) & (trace.start[ops] < ends[position])
    ops, position, makes = ops[within], position[within], makes[within]
    calls = np.bincount(position, makes, len(steps))
    counted = calls[position] > 0  # the steps of which something is known
    ran = np.bincount(trace.name[ops[counted]], minlength=size)
    usual = np.bincount(trace.name[ops[counted]], makes[counted], size) / np.maximum(ran, 1)
    expected = np.bincount(position, usual[trace.name[ops]], len(steps))
    missing = expected - calls
    lost = (missing >= FEWEST) & (calls < LEFT * expected)
    beside = np.zeros(len(steps), bool)
    beside[1:] |= lost[:-1]
    beside[:-1] |= lost[1:]
    return tuple((lost | (beside & (missing >= FEWEST) & (calls < BESIDE * expected))).tolist())


def _calling(trace: Trace) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The operators, and which of them called the driver: of each call the one that began last before it, on its thread, if it
    had not ended."""
    ops, calls = trace.rows(Kind.OP), trace.rows(Kind.CALL)
    ops = ops[np.lexsort((trace.start[ops], trace.lane[ops]))]
    makes = np.zeros(len(ops), bool)
    for lane in np.unique(trace.lane[calls]).tolist():
        first, last = np.searchsorted(trace.lane[ops], [lane, lane + 1])
        own, at = ops[first:last], trace.start[calls[trace.lane[calls] == lane]]
        began = np.searchsorted(trace.start[own], at, "right") - 1
        known = began >= 0
        began, at = began[known], at[known]
        makes[first + began[trace.end[own[began]] > at]] = True
    return ops, makes
