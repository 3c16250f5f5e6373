"""Whether the steps that were timed without a recording say how long a recorded one takes without it.

They do not where the recorded ones are much shorter, for no recorder makes a step shorter: the others were the first, in which
libraries load and kernels are built. Nor where they are shorter than the device works in a step: then the host ran ahead of
it, and its time was taken for the step's. Such a baseline is left out, with a note.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from syncscope.analysis.intervals import union
from syncscope.analysis.waits import launches
from syncscope.model.durations import about_ms
from syncscope.model.trace import Kind, Meta, StepLengths, Trace

OTHERS = 0.2  # the part by which recorded steps may be shorter than those before them: beyond it they are others
AHEAD = 0.1  # the part by which a step may be shorter than the device's work in one, for that differs too


def with_right_baseline(trace: Trace) -> Trace:
    """The recording as it is, or without `untraced` where that contradicts it, and a note."""
    untraced, traced = trace.meta.get("untraced"), trace.meta.get("traced")
    if untraced is None or traced is None:
        return trace
    why = _contradiction(trace, untraced, traced)
    if not why:
        return trace
    meta = {key: value for key, value in trace.meta.items() if key != "untraced"}
    meta["notes"] = [*(trace.meta.get("notes") or []), f"{why}: what the recorder weighs is not known"]
    return replace(trace, meta=cast("Meta", meta))


def _contradiction(trace: Trace, untraced: StepLengths, traced: StepLengths) -> str:
    without, within = about_ms(untraced["median_ns"]), about_ms(traced["median_ns"])
    if 1 - traced["median_ns"] / untraced["low_ns"] > OTHERS:
        return f"a step took {without} without the recording and {within} in it, so those without were others"
    if untraced["median_ns"] < (1 - AHEAD) * min(traced["median_ns"], works := _device_work(trace)):
        works_for = f"the device works for {about_ms(works)} in one, so the host ran ahead"
        return f"a step took {without} without the recording by the host's clock, and {works_for}"
    return ""


def _device_work(trace: Trace) -> float:
    """ns that the busiest queue works on what the steps launch, per step; the host may be done with them long before it."""
    steps, launched = trace.rows(Kind.STEP), launches(trace)
    since, until = (trace.start[steps].min(), trace.end[steps].max()) if len(steps) else (0, 0)
    called = trace.start[launched.call]
    work = launched.row[(launched.call >= 0) & (called >= since) & (called <= until)]
    if not len(work):
        return 0.0
    lane = np.bincount(trace.lane[work], trace.duration[work]).argmax()
    work = work[trace.lane[work] == lane]
    return float(union(trace.start[work], trace.end[work]).length) / len(steps)
