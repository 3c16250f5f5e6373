"""What a what-if stands on: a recording laid out, its steps and lines, and how a row is made of what a replay says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.by_line import NumberedLines
from syncscope.analysis.changes import Changes
from syncscope.analysis.event_graph import EventGraph
from syncscope.analysis.fidelity import Fidelity
from syncscope.analysis.first_use import asked_times, long_launches
from syncscope.analysis.graph import Graph
from syncscope.analysis.idle_times import loading_times
from syncscope.analysis.intervals import Intervals, covered, union
from syncscope.analysis.price import TimedPart, timed_part
from syncscope.analysis.replay import replay
from syncscope.analysis.waits import FROM_HOST
from syncscope.analysis.what_if_experience import MEASURED, OF_SAVING, margin
from syncscope.model.source import Place
from syncscope.model.trace import Kind, Trace
from syncscope.model.what_if import Effort, WhatIf

LEAST = 0.1  # of the longest time in the loader that another takes in which it loads something
NAMED = 5  # lines that are named in a row
OPTIMIZER = re.compile(r"^Optimizer\.step#(\w+)\.step$")
Numbers = NDArray[np.float64]
Truths = NDArray[np.bool_]


@dataclass(frozen=True)
class Ground:
    """A recording, and what is replayed of it: the host's items with their `gaps` and `cost` (ns, without the recorder's)."""

    trace: Trace
    event_graph: EventGraph
    trusted: Fidelity
    # around what waits, whose passes need nothing of one another
    loops: Mapping[Place, int] = field(default_factory=dict)

    @cached_property
    def graph(self) -> Graph:
        """As it was recorded."""
        return self.event_graph.graph()

    @cached_property
    def window(self) -> TimedPart:
        """The steps that are timed."""
        return timed_part(self.graph)

    @cached_property
    def step(self) -> float:
        """ns that a step takes."""
        return self.window.of(replay(self.graph))

    @cached_property
    def busy(self) -> float:
        """How long the device works in a step, ns."""
        since, until = self.window.span(self.graph)
        span = np.array([since], np.int64), np.array([until], np.int64)
        return float(covered(self.event_graph.worked, *span)[0]) / self.window.steps

    @cached_property
    def lines(self) -> NumberedLines:
        """The line of each item of the host, and of each piece of the device's work."""
        return NumberedLines(self.trace, self.event_graph)

    @cached_property
    def times(self) -> tuple[Numbers, Numbers]:
        """The host's time before each of its items, and in it."""
        return self.event_graph.host_times(self.event_graph.recorder)

    @cached_property
    def loading(self) -> Numbers:
        """How much of the time before each item the host was in the loader."""
        return self._before_each(loading_times(self.trace, self.event_graph))

    @cached_property
    def once(self) -> Numbers:
        """How much of it went to calls that ask the driver for memory, code or queues, or make its context."""
        waiting = np.array([wait.row for wait in self.event_graph.held], np.intp)
        asked = asked_times(self.trace, self.event_graph.launched, waiting).values()
        start, end = (
            np.concatenate([np.zeros(0, np.int64), *(getattr(one, side) for one in asked)]) for side in ("start", "end")
        )
        return self._before_each(union(start, end))

    def _before_each(self, spans: Intervals) -> Numbers:
        host = self.event_graph.host
        end = (host.began + host.origin).astype(np.int64)
        return covered(spans, end - host.gap.astype(np.int64), end).astype(float)

    @cached_property
    def first_load(self) -> Truths:
        """Items before the first launch, where the recording has more loads than steps: what is loaded before them is the first
        batch of a loop, that begins in the recording. Where each step loads once it is as any other step's."""
        found = np.arange(len(self.loading)) <= self.event_graph.device_work.enqueued.min(initial=len(self.loading))
        spans = loading_times(self.trace, self.event_graph)
        took = spans.end - spans.start
        loads = int((took > LEAST * took.max(initial=0)).sum())  # the one that finds no more is short
        first: Truths = found & (self.loading > 0) & (loads > max(1, len(self.event_graph.steps))) & self.timed
        return first

    @cached_property
    def uploading(self) -> Truths:
        """Which items copy something from the host's memory to the device."""
        work = self.event_graph.device_work
        names = np.array([bool(FROM_HOST.search(name)) for name in self.trace.names], bool)
        copies = (self.trace.kind[work.row] == Kind.COPY) & names[self.trace.name[work.row]]
        found: Truths = np.isin(np.arange(len(self.event_graph.host.row)), work.enqueued[copies])
        return found

    @cached_property
    def launches(self) -> Truths:
        """Which items only launch, nothing that comes from the host's memory, and are not held up, nor load a kernel."""
        host, work = self.event_graph.host, self.event_graph.device_work
        found = np.isin(np.arange(len(host.row)), work.enqueued) & ~self.uploading
        waiting = np.append(host.row[host.holds], host.row[self.event_graph.full.cost < host.cost])
        found &= ~np.isin(host.row, long_launches(self.trace, self.event_graph.launched, waiting))
        launching: Truths = found & ~host.holds & (host.row >= 0)
        return launching

    @cached_property
    def backward(self) -> Truths:
        """Which items are launches of the backward pass, as far as that is known: also those of its thread."""
        rows = self.event_graph.host.row
        found: Truths = (rows >= 0) & (self.trace.forward[rows] >= 0)
        if len(steps := self.trace.rows(Kind.STEP)):
            elsewhere: Truths = (rows >= 0) & (self.trace.lane[rows] != self.trace.lane[steps[0]])
            return found | elsewhere
        return found

    @cached_property
    def optimizers(self) -> dict[str, Intervals]:
        """When each optimizer, by its class, stepped."""
        rows = self.trace.rows(Kind.ANNOTATION)
        found = {}
        for code in np.unique(self.trace.name[rows]).tolist():
            if name := OPTIMIZER.match(self.trace.names[code]):
                of = rows[self.trace.name[rows] == code]
                found[name[1]] = union(self.trace.start[of], self.trace.start[of] + self.trace.duration[of])
        return found

    def within(self, spans: Intervals) -> Truths:
        """Which items begin in these."""
        begun = (self.event_graph.host.began + self.event_graph.host.origin).astype(np.int64)
        inside: Truths = np.greater(covered(spans, begun, begun + 1), 0)
        return inside

    def saved(self, changes: Changes | None = None, freed: Sequence[int] = (), drained: bool = False) -> float:
        """What a step is shorter then, ns; where it is `drained`, its end waits for all that it has enqueued.

        Of the host's times only those in the timed steps are changed: a host that has launched sooner in steps that warm up has
        these wait for a device that still works on what came before, and the timed ones seem to catch up on that.
        """
        if changes is not None:
            gaps, cost = self.times
            changes = replace(
                changes,
                gaps=None if changes.gaps is None else np.where(self.timed, changes.gaps, gaps),
                cost=None if changes.cost is None else np.where(self.timed, changes.cost, cost),
            )
        graph = self.graph if changes is None else self.event_graph.graph(changes=changes)
        return self.step - self.window.of(replay(graph, freed, drained=drained))

    @cached_property
    def timed(self) -> Truths:
        """Which of the host's items lie in the steps that are timed."""
        began = self.event_graph.host.began
        since, until = replace(self.window, since=0.0).span(self.graph)  # the host comes to a step before the device
        inside: Truths = (began >= since) & (began < until)
        return inside

    def counted(self, items: Truths) -> Truths:
        """Those of some items that lie in the steps that are timed."""
        return items & self.timed

    def dearest(self, values: Numbers) -> tuple[Place, ...]:
        """The lines that have most of some values, one for each item."""
        spent = self.lines.sums(self.lines.item, values)
        order = [code for code in np.argsort(-spent, kind="stable").tolist() if code and spent[code] > 0]
        return tuple(self.trace.places[self.lines.pairs[code][0]] for code in order[:NAMED])

    def row(
        self,
        name: str,
        saving: float,
        low: float,
        high: float,
        bound: float,
        *,
        lines: tuple[Place, ...] = (),
        advice: str = "",
        host: float = 0.0,
        device: float = 0.0,
        effort: Effort = Effort.LINES,
        word: str = "",
    ) -> WhatIf:
        """A row whose interval allows for what the replay itself does not understand.

        `host` is the host's time that goes, ns per step: a device that is a processor has it then. `device` is how much of the
        device's own work may go, ns per step: no step is shorter than the rest of it.
        """
        doubt = max(self.trusted.error or 0.0, self.trusted.unexplained, self.trusted.silent)
        off = (min(doubt, 1.0) + margin()) * self.step + OF_SAVING * abs(saving)
        more = host if self.event_graph.on_processor else 0.0
        most = self.step if self.event_graph.on_processor else min(self.step, max(self.step - self.busy, 0.0) + device)
        low, high = min(low, saving - off), min(max(high, saving + off) + more, most)
        bound = min(most, max(bound + more, high))
        saving = min(saving, most)
        return WhatIf(name, saving, low, high, bound, lines, advice, loops=len(MEASURED), effort=effort, word=word)
