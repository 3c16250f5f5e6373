"""How far a replay of a recording can be trusted: what it gets wrong, and what no recorded reason explains.

A replay of a graph that keeps every delay gives back the recording, whatever the delays were: it finds wrong clocks and
misread queues, no more. So a second one is made, in which nothing is late for no recorded reason: what began late begins as
soon as its launch, its queue and the queues it waited for let it, and waits return as fast as such waits do. It differs from
the recording by what is not understood, and by as much may a prediction be wrong.

Neither shows what is missing from the file. A wait that is lost shows in silences (`analysis.silences`), an edge between queues
in how much a replay without waits depends on orders that nothing recorded explains (`analysis.orders`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from syncscope.analysis.changes import Supposed
from syncscope.analysis.errors import half_interval_of_median, margins
from syncscope.analysis.event_graph import EventGraph
from syncscope.analysis.graph import Graph
from syncscope.analysis.hosts import Recorder
from syncscope.analysis.intervals import covered, union
from syncscope.analysis.price import timed_part, unpriced
from syncscope.analysis.recorder_cost import SEEN, unmeasured
from syncscope.analysis.replay import Outcome, replay
from syncscope.model.durations import about_ms
from syncscope.model.report import GATE
from syncscope.model.trace import Lane, Trace

SLIGHT = 1e-4  # of the counted steps: what is shorter changes no figure
HOPELESS = 0.4  # the part of a step from which on not even the whole is told
VAGUE = 1.0  # of a step: a range that is wider is no price
CONTENTION = 0.25  # of the time that host and device work at once: what a device that is a processor was seen to lose


@dataclass(frozen=True, slots=True)
class Fidelity:
    """`error` is that of the worst of the replays, over the counted steps; None without device work.

    `unexplained` is the share of the counted steps in which the device stood still, and something was late for no recorded
    reason. `lanes` gives the share of each queue and thread that was late, whether or not others worked. `silent` is the share
    in which a thread waited for the device, as it seems, though no recorded call did.
    """

    error: float | None
    unexplained: float
    lanes: dict[str, float]
    silent: float = 0.0

    @property
    def open(self) -> float:
        """The part of a step that a replay gets wrong, or cannot explain."""
        return max(self.error or 0.0, self.unexplained, self.silent)

    @property
    def enough(self) -> bool:
        """Whether prices may be given."""
        return self.error is not None and self.open <= GATE

    @property
    def told(self) -> bool:
        """Whether a replay tells anything of a step without waits; what is off by so much is no figure."""
        return self.error is not None and self.open <= HOPELESS

    @property
    def refusal(self) -> str:
        """Why no prices may be given; "" where they may."""
        if self.error is None:
            return "no work of a device was recorded"
        if self.error > GATE:
            return f"a replay is {self.error:.1%} off the recording"
        if self.unexplained > GATE:
            return f"in {self.unexplained:.0%} of a step the device stands still for no recorded reason"
        if self.silent > GATE:
            return f"in {self.silent:.0%} of a step a thread waits for the device by no recorded call"
        return ""


UNTOLD = Fidelity(None, 0.0, {})
"""Of a recording that cannot be judged."""


def fidelity_of(event_graph: EventGraph, graph: Graph) -> Fidelity:
    """How far replays of a graph, which `event_graph` gave, can be trusted."""
    if not graph.ops:
        return Fidelity(None, 0.0, {})
    delays = event_graph.late
    errors = [error(graph, replay(graph))]
    if _matters(event_graph, graph):
        errors.append(error(graph, replay(event_graph.graph(supposed=Supposed(late="never")))))
    if event_graph.orders:
        errors.append(_disorder(event_graph, graph))
    first, last = _span(graph)
    since, until = np.array([first]).astype(np.int64), np.array([last]).astype(np.int64)
    length = max(1.0, last - first)
    lanes: dict[str, float] = {}
    parts = []
    several = len({late.lane.device for late in delays if late.lane.device >= 0}) > 1
    for late in delays:
        spans = union(late.start.astype(np.int64), late.end.astype(np.int64))
        share = float(covered(spans, since, until)[0]) / length
        if share > 0:
            name = _name(late.lane, several)
            lanes[name] = lanes.get(name, 0.0) + share
            parts.append(spans)
    idle = 0.0
    if parts:
        spans = union(np.concatenate([p.start for p in parts]), np.concatenate([p.end for p in parts]))
        start, end = np.clip(spans.start, since, until), np.clip(spans.end, since, until)
        idle = float((end - start - covered(event_graph.worked, start, end)).sum()) / length
    silent = 0.0
    for late in event_graph.silent():
        spans = union(late.start.astype(np.int64), late.end.astype(np.int64))
        share = float(covered(spans, since, until)[0]) / length
        silent = max(silent, share)
        if share > 0:
            lanes[_name(late.lane, several)] = lanes.get(_name(late.lane, several), 0.0) + share
    return Fidelity(max(errors), idle, lanes, silent)


def bounds(event_graph: EventGraph, graph: Graph, freed: Collection[int]) -> tuple[float, float]:
    """The shortest and the longest that a step may take without these reads, ns.

    What takes the place of a read may do as much as it did, except to wait, or nothing at all; what runs over all rows in place
    of a selection may be all that was launched until its gradient came back, or nothing; and the host may go on faster where
    it did not wait. What was late for no recorded reason may have been so for the work before it, for its launch, or by
    chance. The steps were not alike, neither to each other nor to those that were not recorded, and no replay is better than it
    reproduces the recording. What the recorder took may have been a part of what the reads did; where nothing tells how much it
    took, it may have been what recorders are seen to take. A processor that is also the
    device works more slowly while the host works beside it, as it then does for longer, and while other programs had it.
    """
    window = timed_part(graph)
    step = window.of(replay(graph))

    def length(supposed: Supposed) -> float:
        return window.of(replay(event_graph.graph(supposed=supposed), freed))

    lengths = [window.of(replay(graph, freed)), length(Supposed(gone=True, slow=True))]
    if not event_graph.replaceable.isdisjoint(freed):
        lengths.append(length(Supposed(stays=True)))
    if any(not set(one.reads).isdisjoint(freed) for one in event_graph.selections):
        lengths += [length(Supposed(added="nothing")), length(Supposed(added="most"))]
    if event_graph.orders:
        lengths.append(length(Supposed(ordered=True)))
    recorded = event_graph.graph(Recorder())
    slowed = window.of(replay(recorded))
    lengths.append(step * window.of(replay(recorded, freed)) / slowed)
    if unmeasured(event_graph.trace):
        lengths.append(window.of(replay(event_graph.graph(SEEN), freed)))
    if _matters(event_graph, graph):
        others = (
            event_graph.graph(supposed=Supposed(late="launch")),
            event_graph.graph(supposed=Supposed(late="never")),
        )
        lengths += [step - window.of(replay(other)) + window.of(replay(other, freed)) for other in others]
    chosen = np.zeros((1, len(graph.reads)), bool)
    chosen[0, list(freed)] = True
    margin = (
        float(margins(graph, chosen)[0]) + error(recorded, replay(recorded)) * step + _unlike(event_graph.trace, step)
    )
    margin += crowded(event_graph) * step
    beside = CONTENTION * max(0.0, step - lengths[0]) if event_graph.on_processor else 0.0
    return max(0.0, min(lengths) - margin), max(lengths) + beside + margin


def too_wide(low: float, high: float, step: float) -> str:
    """Why what a step, now of `step` ns, may take without some reads foretells nothing; "" where it does.

    Between ends so far apart lie a step that is much shorter and one that is longer, and nearly any outcome would come true.
    """
    if high - low <= VAGUE * step:
        return ""
    return f"a step of {about_ms(step)} would take anything between {about_ms(low)} and {about_ms(high)}"


def came_true(predicted: float, said: tuple[float, float], measured: tuple[float, float], before: float) -> bool | None:
    """Whether a prediction (a step, or a ratio of two) came true, of which it is said between what it lies; None where that is
    too wide to tell. `measured` is between what the truth lies, `before` what was to become shorter.

    What is longer although it was to be shorter did not come true, however wide the range. A range that holds `before`
    promises nothing: there the prediction itself must be what was measured. Both
    intervals together may not be as wide as the step.
    """
    low, high = said
    least, most = measured
    if most < low or high < least or predicted < before < least:
        return False
    if high - low + most - least > predicted:
        return None
    return True if least <= predicted <= most or high < before else None


def added_unknown(event_graph: EventGraph, freed: Collection[int]) -> bool:
    """Whether what the rewrites of these reads add may be anything: between nothing and the most that may lies over a step."""
    if all(set(one.reads).isdisjoint(freed) for one in event_graph.selections):
        return False
    graph = event_graph.graph()
    window = timed_part(graph)
    least, most = (
        window.of(replay(event_graph.graph(supposed=supposed), freed))
        for supposed in (Supposed(added="nothing"), Supposed(added="most"))
    )
    return most - least > window.of(replay(graph))


def unforeseen_lines(event_graph: EventGraph, graph: Graph, members: Sequence[Sequence[int]]) -> frozenset[int]:
    """The lines (by number) that seem to save something, but select rows, and what all rows add is not known to within a step.

    `members` are the reads of each line. Lines that share a mask are rewritten together, and so are those that share a line
    with these.
    """
    groups: list[set[int]] = []
    for reads in {one.reads for one in event_graph.selections}:
        of = {n for n, rows in enumerate(members) if not set(rows).isdisjoint(reads)}
        apart = [group for group in groups if group.isdisjoint(of)]
        groups = [*apart, of.union(*(group for group in groups if group not in apart))]
    left, found, window = unpriced(graph), set[int](), timed_part(graph)
    for group in groups:
        freed = {r for n in group for r in members[n]} - left
        if added_unknown(event_graph, freed) and window.of(replay(graph)) > window.of(replay(graph, freed)):
            found |= group
    return frozenset(found)


def crowded(event_graph: EventGraph) -> float:
    """The part of its time for which a processor that is also the device was others' while it was recorded."""
    return float(event_graph.trace.meta.get("others") or 0.0) if event_graph.on_processor else 0.0


def _unlike(trace: Trace, step: float) -> float:
    """By how much a step, ns, may differ from those of the same run that were not recorded: they tell what is left of the
    recorder in it, and whether something else made the recorded ones slower or faster; with the 95 % interval of their median.
    """
    untraced = trace.meta.get("untraced")
    if not untraced:
        return 0.0
    return abs(step - float(untraced["median_ns"])) + half_interval_of_median(untraced)


def _disorder(event_graph: EventGraph, graph: Graph) -> float:
    """How much longer a step without waits is if work of different queues keeps the order it had, in parts of a step."""
    window, everything = timed_part(graph), range(len(graph.reads))
    longer = window.of(replay(event_graph.graph(supposed=Supposed(ordered=True)), everything)) - window.of(
        replay(graph, everything)
    )
    return max(0.0, longer) / max(1.0, window.of(replay(graph)))


def _matters(event_graph: EventGraph, graph: Graph) -> bool:
    """Whether all that was late could change the counted steps: no end moves by more than the sum of what was late before."""
    first, last = _span(graph)
    before = sum(float((late.end - late.start)[late.start < last].sum()) for late in event_graph.late)
    return before > SLIGHT * (last - first)


def _span(graph: Graph) -> tuple[float, float]:
    """Begin and end of the counted steps, ns since the origin."""
    return timed_part(graph).span(graph)


def error(graph: Graph, outcome: Outcome) -> float:
    """The mean error of the lengths of the counted steps, relative to their mean; without steps that of the whole."""
    if graph.end <= 0:
        return 0.0
    window = timed_part(graph)
    ends, told = list(graph.ends), list(outcome.ends)
    if window.first < 0:
        ends, told = [window.since, *ends, graph.end], [window.since, *told, outcome.end]
    else:
        part = slice(window.first, window.last + 1)
        ends, told = ends[part], told[part]
    measured, replayed = np.diff(ends), np.diff(told)
    return float(np.abs(replayed - measured).sum() / max(1.0, ends[-1] - ends[0]))


def _name(lane: Lane, several: bool) -> str:
    """What a thread or a queue is called, with its device where there are several."""
    if lane.device < 0:
        return lane.label.strip() or f"thread {lane.thread}"
    name = lane.label.strip() or f"stream {lane.thread}"
    return f"{name} of device {lane.device}" if several else name
