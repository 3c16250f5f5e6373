"""Training steps and how much of them the device worked."""

from __future__ import annotations

import re

import numpy as np

from syncscope.analysis.intervals import covered, union
from syncscope.analysis.waits import Launches
from syncscope.model.report import Step
from syncscope.model.trace import Kind, Trace

NUMBER = re.compile(r"#(\d+)$")


def steps(trace: Trace, launched: Launches) -> tuple[Step, ...]:
    """The steps in the order of their start, each with the ns in which any queue of any device worked."""
    rows = trace.rows(Kind.STEP)
    rows = rows[np.array([lane.device < 0 for lane in trace.lanes], bool)[trace.lane[rows]]] if len(rows) else rows
    start, end = trace.start[rows], trace.start[rows] + trace.duration[rows]
    busy = covered(union(trace.start[launched.row], (trace.start + trace.duration)[launched.row]), start, end)
    found = []
    for position, row in enumerate(rows.tolist()):
        number = NUMBER.search(trace.names[trace.name[row]])
        index = int(number[1]) if number else position
        found.append(Step(index, int(start[position]), int(end[position]), int(busy[position])))
    return tuple(found)


def busy_share(trace: Trace, launched: Launches, found: tuple[Step, ...]) -> float | None:
    """The share of the steps (of the whole recording where there are none) in which the device worked."""
    if not len(launched.row):
        return None
    if found:
        length = sum(s.end - s.start for s in found)
        return sum(s.busy for s in found) / length if length else None
    work = union(trace.start[launched.row], (trace.start + trace.duration)[launched.row])
    first, last = window(trace, launched)
    return work.length / (last - first) if last > first else None


def window(trace: Trace, launched: Launches) -> tuple[int, int]:
    """First and last moment of the recording: of the host's calls and operators and of the device's work, ns."""
    rows = np.concatenate([trace.rows(Kind.STEP, Kind.OP, Kind.READ, Kind.CALL), launched.row])
    if not len(rows):
        return 0, 0
    return int(trace.start[rows].min()), int((trace.start[rows] + trace.duration[rows]).max())
