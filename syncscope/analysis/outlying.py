"""Steps that say nothing of the others: one in which a checkpoint was written, a model evaluated, or the program stood still.

A host that runs ahead marks steps of unlike lengths though each does the same, so a step is measured besides by how long the
device stood still in it, and how long it works on what was launched there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from syncscope.analysis.intervals import covered, union
from syncscope.analysis.waits import Launches
from syncscope.model.durations import in_ms
from syncscope.model.report import Step, step_lengths
from syncscope.model.trace import Trace

FAR = 20  # times as long as the middle one: what is less may be a slow step of the loop
RARE = 8  # of so many steps one may be outlying: where it comes more often, it belongs to the loop
FEWEST = 4  # steps of which one may be
NAMED = 3  # steps in a note


def set_aside(trace: Trace, launched: Launches, found: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps, those marked that took far longer than the others, where these are few."""
    if len(found) < FEWEST or not len(launched.row):
        return found
    ends = np.array([step.end for step in found], np.int64)
    lengths = np.array(step_lengths(found), np.int64)
    work = union(trace.start[launched.row], trace.end[launched.row])
    still = lengths - covered(work, ends - lengths, ends)
    asked = np.where(launched.call >= 0, trace.start[launched.call], trace.start[launched.row])
    step = np.searchsorted(ends, asked, "right")
    within = step < len(found)
    own = still + np.bincount(step[within], trace.duration[launched.row[within]], len(found))
    settled = [n for n, each in enumerate(found) if each.settled][1:-1]
    if len(settled) < FEWEST:
        return found
    most = FAR * median(own[settled].tolist())
    far = [n for n in settled if own[n] > most and lengths[n] > FAR * median(lengths[settled].tolist())]
    if not far or len(far) > max(1, len(settled) // RARE):
        return found
    return tuple(replace(each, outlying=n in far) for n, each in enumerate(found))


def set_aside_told(found: Sequence[Step]) -> str:
    """Which steps were set aside; "" where none was."""
    lengths = step_lengths(found)
    far = [(step.index, lengths[n]) for n, step in enumerate(found) if step.outlying]
    if not far:
        return ""
    usual = median(lengths[n] for n, step in enumerate(found) if not step.outlying)
    named = ", ".join(f"step {index} took {in_ms(length)}" for index, length in far[:NAMED])
    more = f", and {len(far) - NAMED} more as long" if len(far) > NAMED else ""
    return (
        f"{named}{more}, where another takes {in_ms(usual)}: figures are of the longest run of steps without "
        f"{'it' if len(far) == 1 else 'them'}, and what was done there (a checkpoint, an evaluation, a pause) is not in them"
    )
