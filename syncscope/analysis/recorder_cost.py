"""What being recorded added to the host, where the same run was also timed without: so much for each event.

The replay that changes nothing is to give the untraced step. It gets shorter the more is taken off the host, so the cost of an
event is found by halving; nothing is taken where the recorded step is no longer than the untraced one.
"""

from __future__ import annotations

from syncscope.analysis.event_graph import EventGraph
from syncscope.analysis.graph import Graph
from syncscope.analysis.price import timed_part
from syncscope.analysis.replay import replay
from syncscope.model.trace import Trace

MOST = 64_000.0  # ns an event: beyond it the difference is something else
CLOSE = 0.002  # of a step


def without_recorder(event_graph: EventGraph, trace: Trace) -> Graph:
    """The graph of a recording, from now on without the recorder's own time where the same run was also timed without it."""
    if "untraced" in trace.meta:
        event_graph.overhead = recorder_cost(event_graph, float(trace.meta["untraced"]["median_ns"]))
    return event_graph.graph()


def recorder_cost(event_graph: EventGraph, untraced: float) -> float:
    """ns of the host for each event that was recorded; `untraced` is what a step takes without the recorder, ns."""

    def step(each: float) -> float:
        graph = event_graph.graph(each)
        return timed_part(graph).of(replay(graph))

    low, high = 0.0, 500.0
    if step(low) <= untraced:
        return low
    while step(high) > untraced:
        if high >= MOST:
            return low  # waits and the device take that long: less of the host changes nothing
        low, high = high, 2 * high
    while True:
        each = (low + high) / 2
        found = step(each)
        if abs(found - untraced) <= CLOSE * untraced or high - low < 1.0:
            return each
        low, high = (each, high) if found > untraced else (low, each)
