"""Where a step goes, by line: every moment of the host and of the device is some line's, or stands in the row of none.

```text
host   [launch 14]---[launch 15]----[launch 15]-[ wait 17....]--[launch 14]
line   |    14   |       15    |       15     |      17      |    14   |      what comes before a call is for that call
queue       [==14==]        [==15==]    [==15==]                    [==14==]
idle   |-14-|      |---15---|                  |----17-----| 14|
```

The host is one clock, as in a replay (`analysis.hosts`), so its times add up to the step; a device's do so where each moment is
given to the work that began first. What it was idle for is `analysis.idle_times`, of which the waits' part is their lines', and
the rest that of the launch which ended it. What a backward pass launches is, on the host, the line's that called it, and on the
device the line's whose gradient it is, where that is known.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.event_graph import EventGraph
from syncscope.analysis.idle_times import IdleTimes, loading_times
from syncscope.analysis.intervals import covered
from syncscope.analysis.step_uses import counted_part
from syncscope.analysis.steps import alike, window
from syncscope.model.line_use import LineUse, LineUses
from syncscope.model.source import installed
from syncscope.model.trace import Trace
from syncscope.model.uses import Use

KERNELS = 5  # names of a line's device work that are kept
Numbers = NDArray[np.float64]
Codes = NDArray[np.intp]


def uses_by_line(trace: Trace, event_graph: EventGraph, idle: IdleTimes | None) -> LineUses | None:
    """What each line takes of a counted step; None without work of a device."""
    if idle is None:
        return None
    first, last, steps = counted_part(trace, event_graph)
    lines = NumberedLines(trace, event_graph)
    found: dict[str, Numbers] = {}
    host = _host(trace, event_graph, lines, found)
    kernels = _device(trace, event_graph, lines, first, last, found)
    _waits(event_graph, idle, lines, first, last, found)
    per_step = {name: (values / len(steps)).tolist() for name, values in found.items()}
    named = {code: [(name, ns / len(steps)) for name, ns in names] for code, names in kernels.items()}
    rows = []
    for code, (place, caller) in enumerate(lines.pairs):
        values = {name: column[code] for name, column in per_step.items()}
        since = int(lines.since[code])
        one = LineUse(
            place=trace.places[place] if place >= 0 else None,
            function=trace.function(place),
            library=caller >= 0 or (place >= 0 and installed(trace.places[place].path)),
            caller=trace.places[caller] if caller >= 0 else None,
            since=trace.places[since] if since >= 0 else None,
            kernels=tuple(named.get(code, ())),
            **values,
        )
        if place < 0 or any(values.values()):
            rows.append(one)
    rows.sort(key=lambda one: (-one.of_step, -one.host))
    return LineUses((last - first) / len(steps), host / len(steps), tuple(rows))


class NumberedLines:
    """The lines of a recording, numbered: `pairs` of place and caller; number 0 is none.

    `item` is the line of each item of the host, where a mark has its next call's; `before` is that of the call before it, marks
    aside. `work` is the line of each piece of device work as launched. `since` is filled by what is measured of the host.
    """

    def __init__(self, trace: Trace, event_graph: EventGraph) -> None:
        host, launched = event_graph.host, event_graph.launched
        self._order = np.argsort(host.row, kind="stable")
        self._rows = host.row[self._order]
        place, caller = trace.place[host.row].astype(np.int64), trace.caller[host.row].astype(np.int64)
        for read in event_graph.reads:  # recordings whose calls have no lines know those of reads
            if read.row >= 0 and read.calls and trace.place[read.row] >= 0:
                inside = self.item_of(np.array(read.calls, np.intp))
                bare = inside[place[inside] < 0]
                place[bare], caller[bare] = trace.place[read.row], trace.caller[read.row]
        many = len(trace.places) + 1
        key = np.where(place >= 0, (place + 1) * many + caller + 1, 0)
        called, forward = launched.call >= 0, trace.forward[launched.call]
        own = (trace.place[launched.row].astype(np.int64) + 1) * many  # of comprehensions
        given = np.where(called, key[self.item_of(launched.call)], own) if len(key) else own
        ahead = (forward[called & (forward >= 0)].astype(np.int64) + 1) * many
        known = np.unique(np.concatenate([[0], *(np.unique(keys) for keys in (key, given, ahead))]))
        self.pairs = [(int(k) // many - 1, int(k) % many - 1) if k else (-1, -1) for k in known.tolist()]
        numbered, marks = np.searchsorted(known, key), host.row < 0
        self.item = _next_where(numbered, marks)
        self.before = _last_where(numbered, marks)
        self.work = np.searchsorted(known, given)
        self.since = np.full(len(known), -1, np.intp)
        self.whose = self.work.copy()  # forward operators' lines
        back = np.flatnonzero(called & (forward >= 0))
        if len(back):
            places = np.array([place for place, _ in self.pairs], np.intp)
            often = np.bincount(self.work, minlength=len(known))
            order = np.lexsort((often, places))
            # of a place the pair that launches most
            best = dict(zip(places[order].tolist(), order.tolist(), strict=True))
            self.whose[back] = [best[of] for of in forward[back].tolist()]
        self.backward = np.zeros(len(self.work), bool)
        self.backward[back] = True

    def item_of(self, calls: Codes) -> Codes:
        """The item of the host that each call is."""
        found: Codes = self._order[np.minimum(np.searchsorted(self._rows, calls), len(self._rows) - 1)]
        return found

    def sums(self, code: Codes, values: Numbers | None = None) -> Numbers:
        """What each line has of some values, or how many of them there are."""
        return np.bincount(code, values, len(self.pairs)).astype(float)


def _next_where(code: Codes, missing: NDArray[np.bool_]) -> Codes:
    """The codes, those that are missing as the next that is not; at the end as the last."""
    at = np.where(missing, len(code), np.arange(len(code)))
    following = np.minimum.accumulate(at[::-1])[::-1]
    last = int(np.flatnonzero(~missing)[-1]) if not missing.all() else -1
    found: Codes = np.append(code, 0)[np.where(following < len(code), following, last)]
    return found


def _last_where(code: Codes, missing: NDArray[np.bool_]) -> Codes:
    """The code before each that is not missing; of the first its own."""
    at = np.maximum.accumulate(np.where(missing, -1, np.arange(len(code))))
    at = np.append(-1, at[:-1])[: len(code)]
    first = int(np.argmin(missing)) if len(code) else 0
    found: Codes = code[np.where(at < 0, first, at)]
    return found


def _host(trace: Trace, event_graph: EventGraph, lines: NumberedLines, found: dict[str, Numbers]) -> float:
    """The host's side of each line; what it adds up to, ns."""
    host, marked = event_graph.host, event_graph.marked
    chosen = alike(event_graph.steps) or range(len(marked))
    since = marked[chosen[0] - 1].end if chosen and chosen[0] else marked[0].start if marked else 0
    first, last = (since, marked[chosen[-1]].end) if chosen else window(trace, event_graph.launched)
    origin = host.origin
    begin = (host.began - host.gap + origin).clip(first, last)
    began = (host.began + origin).clip(first, last)
    end = (host.began + host.cost + origin).clip(first, last)
    loading = covered(loading_times(trace, event_graph), begin.astype(np.int64), began.astype(np.int64)).astype(float)
    between, calling = began - begin - loading, end - began
    waiting = np.minimum(calling, _blocked(trace, event_graph, lines))
    for name, values in (
        ("driver", calling - waiting),
        ("between", between),
        ("waiting", waiting),
        ("loading", loading),
    ):
        found[name] = lines.sums(lines.item, values)
    launching = np.zeros(len(host.row), bool)
    enqueued = event_graph.device_work.enqueued  # in a recording without calls of the host it names none that is there
    launching[enqueued[(enqueued >= 0) & (enqueued < len(launching))]] = True
    inside = launching & (host.row >= 0) & (host.began + origin >= first) & (host.began + origin < last)
    found["launches"] = lines.sums(lines.item[inside])
    following = lines.before * len(lines.pairs) + lines.item
    pair = np.unique(following)
    # of few different ones: in a fraction of the memory of what `np.unique` gives besides
    at = np.searchsorted(pair, following)
    spent = np.bincount(at, between, len(pair))
    most = np.zeros(len(lines.pairs))
    for number in np.argsort(spent, kind="stable").tolist():  # the largest of each line comes last
        previous, own = divmod(int(pair[number]), len(lines.pairs))
        most[own] = spent[number]
        lines.since[own] = lines.pairs[previous][0] if previous != own else -1
    return float((end - begin).sum())


def _blocked(trace: Trace, event_graph: EventGraph, lines: NumberedLines) -> Numbers:
    """How long the host waited for the device in each of its items, ns."""
    blocked = np.zeros(len(event_graph.host.row))
    if event_graph.held:
        start, duration = trace.start, trace.duration
        ends = [max((int(start[t] + duration[t]) for t in wait.targets), default=0) for wait in event_graph.held]
        rows = np.array([wait.row for wait in event_graph.held], np.intp)
        until = np.minimum(np.array(ends), start[rows] + duration[rows])
        blocked[lines.item_of(rows)] = (until - start[rows]).clip(0)
    return blocked


def _device(
    trace: Trace, event_graph: EventGraph, lines: NumberedLines, first: int, last: int, found: dict[str, Numbers]
) -> dict[int, list[tuple[str, float]]]:
    """The device's side of each line; of each the names of its work that took longest, ns."""
    rows = event_graph.launched.row
    start, end = trace.start[rows].clip(first, last), (trace.start[rows] + trace.duration[rows]).clip(first, last)
    order = np.lexsort((end, start))
    reach = np.append(first, np.maximum.accumulate(end[order])[:-1])
    own = np.zeros(len(rows))
    own[order] = (end[order] - np.maximum(start[order], reach)).clip(0)
    found["device"] = lines.sums(lines.whose, own * ~lines.backward)
    found["backward"] = lines.sums(lines.whose, own * lines.backward)
    inside = (trace.start[rows] >= first) & (trace.start[rows] < last)
    found["bytes"] = lines.sums(lines.work, trace.bytes[rows].clip(0) * inside)
    many = max(1, len(trace.names))
    named_by = lines.whose * many + trace.name[rows]
    pair = np.unique(named_by)
    at = np.searchsorted(pair, named_by)
    spent = np.bincount(at, own, len(pair))
    named: dict[int, list[tuple[str, float]]] = {}
    for number in np.argsort(-spent, kind="stable").tolist():
        code, name = divmod(int(pair[number]), many)
        if spent[number] > 0 and len(of := named.setdefault(code, [])) < KERNELS:
            of.append((trace.names[name], float(spent[number])))
    return named


def _waits(
    event_graph: EventGraph, idle: IdleTimes, lines: NumberedLines, first: int, last: int, found: dict[str, Numbers]
) -> None:
    """The waits of each line, and the idle time that is theirs or their launches'."""
    reads = event_graph.reads
    last_call = np.array([read.calls[-1] for read in reads], np.intp)
    code = lines.item[lines.item_of(last_call)] if len(reads) else last_call
    counted = np.array([first <= read.start < last for read in reads], bool)
    found["waits"] = lines.sums(code[counted])
    inside = idle.within(first, last)
    others = [parts for use, parts in idle.parts.items() if use not in (Use.WAIT, Use.UNEXPLAINED)]
    launching = np.where(idle.call >= 0, lines.item[lines.item_of(idle.call)], 0) if len(lines.item) else idle.call + 1
    at_launches = lines.sums(launching, _total(others, len(inside)) * inside)
    at_launches[0] += float(idle.parts[Use.UNEXPLAINED][inside].sum())
    found["idle"] = lines.sums(code, idle.after_reads(len(reads), inside)) + at_launches


def _total(columns: Iterable[Numbers], length: int) -> Numbers:
    return sum(columns, np.zeros(length))
