"""Where a step of a rank goes: its device computes, copies, exchanges with the others, or stands still."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from syncscope.analysis.event_graph import EventGraph
from syncscope.analysis.idle_times import idle_times
from syncscope.analysis.intervals import covered, minus, union
from syncscope.analysis.start_causes import COLLECTIVE
from syncscope.analysis.step_uses import USES, step_uses
from syncscope.analysis.steps import window
from syncscope.model.report import step_lengths
from syncscope.model.trace import Kind, Trace
from syncscope.model.uses import Use

WHOLE = ("step", "busy", "compute", "overlapped", "copy", "exposed", "idle")


@dataclass(frozen=True, slots=True)
class RankTimes:
    """ns of a step.

    `busy` and `idle` add up to `step`; `compute`, `copy` and `exposed`, the exchange with other ranks while the device neither
    computes nor copies, to `busy`. `overlapped` is how much of `compute` an exchange runs beside, `why` where idle time goes.
    """

    step: float
    busy: float
    compute: float
    overlapped: float
    copy: float
    exposed: float
    idle: float
    why: tuple[tuple[str, float], ...] = ()


def rank_times(trace: Trace, event_graph: EventGraph) -> tuple[RankTimes, ...]:
    """Where each step of a rank goes, in their order, its recording where it marks none; nothing without work of a device."""
    uses = step_uses(trace, event_graph, idle_times(trace, event_graph, event_graph.host.origin))
    if uses is None:
        return ()
    steps = event_graph.steps
    if not steps:
        span = window(trace, event_graph.launched)
        return (
            _times(uses.step, {one.use: one.time for one in uses.spent}, _overlapped(trace, event_graph, [span])[0]),
        )
    lengths = step_lengths(steps)
    spans = [(step.end - length, step.end) for step, length in zip(steps, lengths, strict=True)]
    both = _overlapped(trace, event_graph, spans)
    spent = (dict(zip(USES, map(float, times), strict=True)) for times in uses.steps)
    return tuple(map(_times, map(float, lengths), spent, both))


def mean_times(each: Sequence[RankTimes]) -> RankTimes | None:
    """Where the mean of these steps goes; None of none."""
    if not each:
        return None
    why = Counter[str]()
    for times in each:
        why.update(dict(times.why))
    means = {name: sum(getattr(times, name) for times in each) / len(each) for name in WHOLE}
    return RankTimes(**means, why=tuple((use, ns / len(each)) for use, ns in why.most_common()))


def _times(step: float, time: Mapping[Use, float], overlapped: float) -> RankTimes:
    why = tuple((str(use), ns) for use, ns in time.items() if use.is_idle and ns)
    compute, copy, exposed = (time[use] for use in (Use.COMPUTE, Use.COPY, Use.COLLECTIVE))
    return RankTimes(
        step=step,
        busy=compute + copy + exposed,
        compute=compute,
        overlapped=overlapped,
        copy=copy,
        exposed=exposed,
        idle=sum(ns for _, ns in why),
        why=tuple(sorted(why, key=lambda pair: -pair[1])),
    )


def _overlapped(trace: Trace, event_graph: EventGraph, spans: Sequence[tuple[int, int]]) -> list[float]:
    """ns in each of these spans of time in which the device computes and exchanges at once."""
    rows = event_graph.launched.row
    rows = rows[trace.kind[rows] == Kind.KERNEL]
    polite = np.array([bool(COLLECTIVE.search(name)) for name in trace.names], bool)[trace.name[rows]]
    computing, exchanging = (union(trace.start[own], trace.end[own]) for own in (rows[~polite], rows[polite]))
    since, until = np.array(spans, np.int64).T
    both = covered(computing, since, until) - covered(minus(computing, exchanging), since, until)
    found: list[float] = both.astype(float).tolist()
    return found
