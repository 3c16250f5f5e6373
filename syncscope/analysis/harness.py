"""Waits of whoever records: at the begin or the end of a step, in the very function that runs the profiler.

Such a function waits for the device so that the recording begins or ends with it. Whether the loop does so where nobody records
it no recording tells, so that these are asked about, and are not what to do first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from syncscope.analysis.answer import LIKELY
from syncscope.analysis.event_graph import EventGraph
from syncscope.analysis.nesting import Nesting
from syncscope.analysis.reads import carries
from syncscope.model.answer import Answer, Decision
from syncscope.model.report import Line, Read
from syncscope.model.trace import Kind, Trace

RUNS = re.compile(r"torch/profiler/profiler\.py\(\d+\): (?:step|start|stop|__enter__|__exit__)$")
SAID = 0.01  # of a step that such waits cost, from which on it is said what is left without them
NOTHING = 0.0005
EXPLICIT = "Synchronize"  # what waits for no value ends so


def of_harness(event_graph: EventGraph, members: Sequence[Sequence[int]]) -> list[bool]:
    """Of each line, by its reads, whether all of them are such waits."""
    asked = [all(event_graph.reads[n].op.endswith(EXPLICIT) for n in rows) and bool(rows) for rows in members]
    if not any(asked):
        return asked
    trace = event_graph.trace
    frames = Nesting(trace, Kind.PYTHON)
    rows = trace.rows(Kind.PYTHON)
    runs = [bool(RUNS.search(name)) for name in trace.names]
    running = {_function(trace, frames, row) for row in rows.tolist() if runs[trace.name[row]]} - {-1}

    def waits_so(read: Read) -> bool:
        return _function(trace, frames, read.calls[0]) in running and _at_an_end(event_graph, read)

    return [
        found and all(waits_so(event_graph.reads[n]) for n in own) for found, own in zip(asked, members, strict=True)
    ]


def beside_harness(found: Answer, of_loop: float, asked: Sequence[Line]) -> Answer:
    """The answer where these lines may be no part of the loop, without which an `of_loop` part of a step is left to save: no
    `fix` that rests on them."""
    if found.share is None or found.share - of_loop < SAID:
        return found
    where = " and ".join(dict.fromkeys(line.place.shortly if line.place else f"`{line.op}`" for line in asked))
    left = f"{100 * of_loop:.1f} % of a step is left to save" if of_loop > NOTHING else "nothing is left to save"
    doubt = f"{left} without the wait at {where}, if that is whoever records and no part of the step"
    fix = found.decision is Decision.FIX and of_loop < LIKELY
    return replace(
        found,
        decision=Decision.TRY if fix else found.decision,
        why=f"{doubt}; {found.why}",
        doubt="; ".join(filter(None, (doubt, found.doubt))),
    )


def _function(trace: Trace, frames: Nesting, row: int) -> int:
    """The row of the innermost function of the user's around a call; -1 where none is known."""
    start, end = int(trace.start[row]), int(trace.start[row] + trace.duration[row])
    for frame in reversed(frames.around(int(trace.lane[row]), start, end)):
        if trace.place[frame] >= 0 and not carries(trace.places[trace.place[frame]].path):
            return frame
    return -1


def _at_an_end(event_graph: EventGraph, read: Read) -> bool:
    """Whether nothing is launched before it in its step, or nothing after."""
    trace, calls = event_graph.trace, event_graph.launched.call
    launched = trace.start[calls[calls >= 0]]
    within = [(step.start, step.end) for step in event_graph.marked if step.start <= read.start < step.end]
    for start, end in within:
        launched = launched[(launched >= start) & (launched < end)]
    return not len(launched) or read.start <= launched.min() or read.start >= launched.max()
