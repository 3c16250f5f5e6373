"""Where a step of a rank goes: its device computes, copies, exchanges with the others, or stands still."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from syncscope.analysis.event_graph import EventGraph
from syncscope.analysis.idle_times import idle_times
from syncscope.analysis.intervals import covered, minus, union
from syncscope.analysis.start_causes import COLLECTIVE
from syncscope.analysis.step_uses import counted_part, step_uses
from syncscope.model.trace import Kind, Trace
from syncscope.model.uses import Use


@dataclass(frozen=True, slots=True)
class RankTimes:
    """ns of a counted step, as the rank's own report has them.

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


def rank_times(trace: Trace, event_graph: EventGraph) -> RankTimes | None:
    """Where the counted steps of a rank go; None without work of a device."""
    uses = step_uses(trace, event_graph, idle_times(trace, event_graph, event_graph.host.origin))
    if uses is None:
        return None
    time = {one.use: one.time for one in uses.spent}
    why = tuple((str(use), ns) for use, ns in time.items() if use.is_idle and ns)
    idle = sum(ns for _, ns in why)
    compute, copy, exposed = (time[use] for use in (Use.COMPUTE, Use.COPY, Use.COLLECTIVE))
    return RankTimes(
        step=uses.step,
        busy=compute + copy + exposed,
        compute=compute,
        overlapped=_overlapped(trace, event_graph),
        copy=copy,
        exposed=exposed,
        idle=idle,
        why=tuple(sorted(why, key=lambda pair: -pair[1])),
    )


def _overlapped(trace: Trace, event_graph: EventGraph) -> float:
    """ns of a counted step in which the device computes and exchanges at once."""
    first, last, lengths = counted_part(trace, event_graph)
    rows = event_graph.launched.row
    rows = rows[trace.kind[rows] == Kind.KERNEL]
    polite = np.array([bool(COLLECTIVE.search(name)) for name in trace.names], bool)[trace.name[rows]]
    computing, exchanging = (union(trace.start[own], trace.end[own]) for own in (rows[~polite], rows[polite]))
    alone = minus(computing, exchanging)
    both = [int(covered(times, np.array([first]), np.array([last]))[0]) for times in (computing, alone)]
    return float(both[0] - both[1]) / len(lengths)
