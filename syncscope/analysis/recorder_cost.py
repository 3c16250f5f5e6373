"""What being recorded added to the host, where the same run was also timed without.

The replay that changes nothing is to give the untraced step. First the time goes that the recorder measured for noting reads,
as far as is needed; then the same share of all that the host does for the driver. How much is found by halving; nothing is
taken where the recorded step is no longer than the untraced one. Where all steps were recorded, what was measured goes, and
the range of a price allows for the share that recorders are seen to take.
"""

from __future__ import annotations

from collections.abc import Callable

from syncscope.analysis.event_graph import EventGraph
from syncscope.analysis.graph import Graph
from syncscope.analysis.hosts import Recorder
from syncscope.analysis.price import timed_part
from syncscope.analysis.replay import replay
from syncscope.model.trace import Trace

MOST = 0.5  # of the host's time that a recorder was seen to take; what is more is something else
CLOSE = 0.002  # of a step
# PoCL, 18 loops: a share of 0.08 to 0.5 where one was needed, steps 0.9 to 1.7 times as long
SEEN = Recorder(notes=1.0, share=0.3)


def without_recorder(event_graph: EventGraph, trace: Trace) -> Graph:
    """The graph of a recording, from now on without the recorder's own time: as much as the same run took less without it."""
    if "untraced" in trace.meta:
        event_graph.recorder = recorder_of(event_graph, float(trace.meta["untraced"]["median_ns"]))
    elif unmeasured(trace):
        event_graph.recorder = Recorder(notes=SEEN.notes)
    return event_graph.graph()


def unmeasured(trace: Trace) -> bool:
    """Whether our recorder recorded every step there was, so that nothing tells how long one takes without it."""
    return "traced" in trace.meta and "untraced" not in trace.meta


def recorder_of(event_graph: EventGraph, untraced: float) -> Recorder:
    """What the recorder took, if a step takes `untraced` ns without it."""

    def step(taken: Recorder) -> float:
        graph = event_graph.graph(taken)
        return timed_part(graph).of(replay(graph))

    nothing, noting = Recorder(), Recorder(notes=1.0)
    if step(nothing) <= untraced:
        return nothing
    if step(noting) <= untraced:
        return _between(nothing, noting, step, untraced)
    most = Recorder(notes=1.0, share=MOST)
    if step(most) > untraced:
        return most
    return _between(noting, most, step, untraced)


def _between(low: Recorder, high: Recorder, step: Callable[[Recorder], float], untraced: float) -> Recorder:
    """That with which a step takes as long as without recording; with `low` it takes longer, with `high` less."""
    while True:
        middle = Recorder(notes=(low.notes + high.notes) / 2, share=(low.share + high.share) / 2)
        found = step(middle)
        if abs(found - untraced) <= CLOSE * untraced or high.notes - low.notes + high.share - low.share < CLOSE / 2:
            return middle
        low, high = (middle, high) if found > untraced else (low, middle)
