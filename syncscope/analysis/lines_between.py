"""What a rank did between two moments, by line: its host, and the work of its device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from syncscope.analysis.by_line import NumberedLines
from syncscope.analysis.event_graph import EventGraph
from syncscope.analysis.hosts import OPERATOR
from syncscope.analysis.start_causes import COLLECTIVE
from syncscope.model.trace import Trace

LEAST = 0.01  # of the time between two moments


class AtLine(NamedTuple):
    """A line; `before` it is what the host did since a call of another one."""

    place: str
    before: bool = False

    def __str__(self) -> str:
        return f"{'before ' * self.before}{self.place}"


SpentAt = tuple[tuple[str | AtLine, float], ...]
"""Lines, or kernels of none, and ns, the longest first."""


class LinesBetween:
    """The host's time and the device's work of a recording, in order, with the name of the line of each part: the user's, where
    it led into a library."""

    def __init__(self, trace: Trace, event_graph: EventGraph) -> None:
        self._trace = trace
        lines = NumberedLines(trace, event_graph)
        host, launched = event_graph.host, event_graph.launched
        self._names = [_name(trace, place, caller) for place, caller in lines.pairs]
        self._began = host.began + host.origin
        self._line = lines.item
        self._before = np.where((lines.before != lines.item) & (host.gap > OPERATOR), host.gap, 0.0)
        self._spent = host.gap + host.cost - self._before
        own = np.array([not COLLECTIVE.search(name) for name in trace.names], bool)
        rows = np.flatnonzero(own[trace.name[launched.row]]) if len(own) else np.zeros(0, np.intp)
        order = rows[np.argsort(trace.start[launched.row[rows]], kind="stable")]
        self._work, self._whose = launched.row[order], lines.whose[order]

    def of_host(self, since: int, until: int) -> SpentAt:
        """How long the host was at each line from one moment until another, ns of the trace, and how long before it: between
        the call of another line and its own, where other lines may have run that call no driver."""
        first, last = np.searchsorted(self._began, [since, until])
        found: list[tuple[str | AtLine, float]] = []
        for before, spent in ((False, self._spent), (True, self._before)):
            times = np.bincount(self._line[first:last], spent[first:last], len(self._names))
            found += [
                (AtLine(self._names[code], before), times[code])
                for code in np.flatnonzero(times).tolist()
                if self._names[code]
            ]
        return _longest(found)

    def of_device(self, moments: Sequence[int]) -> list[SpentAt]:
        """What the device worked, without collectives, from each of these moments until the next, ending with the last."""
        trace = self._trace
        starts = trace.start[self._work]
        found, since = [], int(starts[0]) if len(starts) else 0
        for moment in moments:
            first, last = np.searchsorted(starts, [since, moment])
            times: dict[str | AtLine, float] = {}
            for row, code in zip(self._work[first:last].tolist(), self._whose[first:last].tolist(), strict=True):
                name = AtLine(self._names[code]) if self._names[code] else trace.names[trace.name[row]]
                times[name] = times.get(name, 0.0) + float(trace.duration[row])
            found.append(_longest(times.items()))
            since = max(since, int(moment))
        return found


def _name(trace: Trace, place: int, caller: int) -> str:
    line = caller if caller >= 0 else place
    return str(trace.places[line]) if line >= 0 else ""


def _longest(times: Iterable[tuple[str | AtLine, float]]) -> SpentAt:
    """Those that take a hundredth of all, the longest first."""
    known = list(times)
    least = LEAST * sum(ns for _, ns in known)
    return tuple(sorted(((name, float(ns)) for name, ns in known if ns > least), key=lambda one: -one[1]))
