"""The ratio that a recording promises: a replay of it without the waits that the rewritten version no longer makes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable

from syncscope.analysis.baseline import with_right_baseline
from syncscope.analysis.changes import Supposed
from syncscope.analysis.compare import freed_reads
from syncscope.analysis.event_graph import event_graph_of
from syncscope.analysis.fidelity import added_unknown, bounds, fidelity_of, too_wide
from syncscope.analysis.price import timed_part
from syncscope.analysis.recorder_cost import without_recorder
from syncscope.analysis.replay import replay
from syncscope.analysis.summary import key_of
from syncscope.model.finding import Adds
from syncscope.model.source import Place
from syncscope.model.trace import Trace
from syncscope.verify.plan import Candidate
from syncscope.verify.timing import Ratio
from syncscope.verify.values import Piece, PieceOf, Values


def foretold(
    trace: Trace, before: Values, after: Values, piece: PieceOf, of_after: PieceOf, plain: Collection[Place] = ()
) -> Ratio | str:
    """The rewritten step over that as written, and between what it lies; or why there is none: the recording cannot be
    replayed, no wait went, what runs over all rows may be anything, or the range is too wide.
    At `plain` places a rewrite adds no work; at others one to a fixed shape may."""
    trace = with_right_baseline(trace)
    event_graph = event_graph_of(trace)
    own = [read.caller or read.place for read in event_graph.reads]  # a program's values are told by its own lines
    at = [None if place is None else _real(place) for place in own]
    event_graph.rewritten({number for number, place in enumerate(at) if place in plain})
    graph = event_graph.graph()
    fidelity = fidelity_of(event_graph, graph)
    if not fidelity.enough:
        return fidelity.refusal
    graph = without_recorder(event_graph, trace)
    left = kept(before, after, piece, of_after)
    shares = {}
    for read, place in zip(event_graph.reads, at, strict=True):
        if place is not None and left.get(place, 1.0) < 1.0:
            shares[key_of(read)] = left[place]
    freed = freed_reads(event_graph.reads, shares)
    window = timed_part(graph)
    step = window.of(replay(graph))
    if not freed or step <= 0:
        went = any(part < 1.0 for part in left.values())
        return "the recorded steps have none of the waits that went" if went else "none of the recorded waits went"
    if added_unknown(event_graph, freed):
        return "what runs over all rows in place of few may take anything"
    predicted = window.of(replay(event_graph.graph(supposed=Supposed(gone=True)), freed))
    low, high = bounds(event_graph, graph, freed)
    if wide := too_wide(low, high, step):
        return f"without these waits {wide}"
    return Ratio(predicted / step, min(low, predicted) / step, max(high, predicted) / step)


def lines_without_rows(candidates: Iterable[Candidate]) -> set[Place]:
    """The lines of fixes that add no work over all rows."""
    return {
        Place(one.path, line)
        for one in candidates
        for line in range(one.line, one.end_line + 1)
        if one.fix.adds is not Adds.ROWS
    }


def _real(place: Place) -> Place:
    return Place(os.path.realpath(place.path), place.line)


def kept(before: Values, after: Values, piece: PieceOf, of_after: PieceOf) -> dict[Place, float]:
    """Of the waits of each line the part that is left. Where the lines of a piece of text keep some, the last ones do."""
    rest: Counter[Piece] = Counter()
    for (place, _), count in after.counts.items():
        rest[of_after(place)] += count
    counts: Counter[Place] = Counter()
    for (place, _), count in before.counts.items():
        counts[place] += count
    shares = {}
    for place in sorted(counts, reverse=True):
        stay = min(counts[place], rest[piece(place)])
        rest[piece(place)] -= stay
        shares[place] = stay / counts[place]
    return shares
