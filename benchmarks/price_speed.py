"""How fast 50 lines are priced with Shapley shares on a recording of 100,000 events.

    python benchmarks/price_speed.py TRACE

The trace's device work and launches are kept; 50 lines, each with one read in every step, are put between its launches. It is
priced as it is, and with queues that take 31 launches, so that each is replayed by itself; beside what reading the trace takes.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import numpy as np

from syncscope import kineto
from syncscope.analysis.changes import Supposed
from syncscope.analysis.event_graph import event_graph_of
from syncscope.analysis.price import PERMUTATIONS, prices
from syncscope.analysis.steps import steps
from syncscope.analysis.waits import launches
from syncscope.model.source import Place
from syncscope.model.trace import Event, Flag, Kind, Trace

LINES = 50
FULL = 31  # launches that a queue takes which is always full


def with_reads(trace: Trace, lines: int) -> Trace:
    """The trace with reads of so many lines in each step, none of them waiting longer than the gap it stands in."""
    launched = launches(trace)
    calls = np.unique(launched.call[launched.call >= 0])
    events = list(trace)
    for step in steps(trace, launched):
        inside = calls[(trace.start[calls] > step.start) & (trace.end[calls] < step.end)]
        for line, row in enumerate(inside[np.linspace(0, len(inside) - 2, lines).astype(int)].tolist()):
            lane, start = trace.lanes[trace.lane[row]], int(trace.end[row])
            events.append(Event(Kind.READ, "item", lane, start, 2_000, place=Place("train.py", line + 1)))
            events.append(Event(Kind.CALL, "clFinish", lane, start, 2_000, flags=Flag.BLOCKING))
    return Trace.of(events, **trace.meta)


def main() -> None:
    begin = time.process_time()
    read = kineto.read(sys.argv[1])
    reading = time.process_time() - begin
    trace = with_reads(read, LINES)
    event_graph = event_graph_of(trace)
    graph, found = event_graph.graph(), event_graph.reads
    by_place: dict[object, list[int]] = {}
    for number, one in enumerate(found):
        by_place.setdefault(one.place, []).append(number)
    print(f"{len(trace):,} events, {graph.ops:,} launches, {len(found)} reads on {len(by_place)} lines")
    print(f"alone, last, shares from {2 * PERMUTATIONS} orders, other ways to change, plan:")
    for depth in (graph.depth, FULL):
        event_graph.full = replace(event_graph.full, depth=depth)
        graph = event_graph.graph(supposed=Supposed(ordered=depth == FULL))  # of one queue the same, but laid out anew
        begin = time.process_time()
        result = prices(graph, list(by_place.values()))
        took = time.process_time() - begin
        print(
            f"queues of {depth} launches, {len(graph.stream):,} entries: {took:.2f} CPU s, {took / reading:.2f} of reading"
        )
        print(f"    saving {result.saving / 1e6:.2f} ms of {result.step / 1e6:.1f} ms per step")


if __name__ == "__main__":
    main()
