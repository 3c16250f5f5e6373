"""What the host does itself between its launches, were it free: by line, and where no line is known by function or region."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.changes import Changes
from syncscope.analysis.hosts import OPERATOR
from syncscope.analysis.idle_times import user
from syncscope.analysis.nesting import Nesting
from syncscope.analysis.what_if_ground import Ground
from syncscope.model.durations import about_ms
from syncscope.model.source import Place, shortly
from syncscope.model.trace import Kind
from syncscope.model.what_if import WhatIf, own_work

ROWS = 3  # of lines, and of functions
WORTH = 0.01  # the part of a step that must be saved to say a word about it
LONG = 0.001  # the part of a step that the host works before one launch, for its function to be looked up
SEVERAL = 5  # launches of a kernel from which on the first is told from the others
TIMES = 20  # as long as before them: what the host takes before the first is first use then
BY_WORKERS = (
    "have it made by a `DataLoader` with `num_workers`, or by a thread that makes the next one while the device works"
)
Numbers = NDArray[np.float64]


def _spare(ground: Ground) -> Numbers:
    """What the host does before each of its items besides launching and loading, ns, outside of the backward pass."""
    gaps, _ = ground.times
    items = (ground.event_graph.host.row >= 0) & ~ground.backward
    return np.where(items & ground.timed, (gaps - ground.loading - OPERATOR).clip(0), 0.0)


def host_functions(ground: Ground) -> Iterator[WhatIf]:
    """The same where no line is known: what goes before a copy to the device makes its input, whichever functions do; the rest
    by the function, or the region, in whose middle it is."""
    gaps = ground.times[0]
    spare = (_spare(ground) - ground.once).clip(0)
    spare[(ground.lines.item > 0) | (spare < LONG * ground.step)] = 0.0
    spare[_at_first_use(ground, ground.lines.item)] = 0.0
    items = np.flatnonzero(spare)
    if spare.sum() < WORTH * ground.step * ground.window.steps:
        return
    around = Nesting(ground.trace, Kind.PYTHON, Kind.ANNOTATION)
    host, copies = ground.event_graph.host, ground.uploading
    rows: dict[str, list[int]] = {}
    for item, middle in zip(items.tolist(), _middles(ground, items), strict=True):
        lane = int(ground.trace.lane[host.row[item]])
        name = user(ground.trace, around.around(lane, middle, middle))
        if name or copies[item]:
            rows.setdefault("" if copies[item] else name, []).append(item)
    for name, of in sorted(rows.items(), key=lambda row: -spare[row[1]].sum())[:ROWS]:
        inside = np.zeros(len(spare), bool)
        inside[of] = True
        spent = float(spare[inside].sum()) / ground.window.steps
        if spent < WORTH * ground.step:
            return
        saved = ground.saved(Changes(gaps=np.where(inside, gaps - spare, gaps)))
        where = f"the host's own work in {name} is free"
        advice = own_work(spent)
        if not name:
            (most,) = _middles(ground, np.array(of)[[int(spare[of].argmax())]])
            lane = int(ground.trace.lane[host.row[of[int(spare[of].argmax())]]])
            within = user(ground.trace, around.around(lane, most, most))
            where = "the input is ready when it is wanted"
            advice = (
                f"the main thread makes it for {about_ms(spent)}{f', most in {within}' if within else ''}: {BY_WORKERS}"
            )
        yield ground.row(
            where,
            saved,
            0.0 if name else 0.5 * saved,
            saved,
            saved,
            advice=advice,
            word="input" if not name else "host work",
        )


def _middles(ground: Ground, items: NDArray[np.intp]) -> list[int]:
    """The middle of what the host does before each of these items, ns of the trace."""
    host = ground.event_graph.host
    end = host.began[items] + host.origin
    middles: list[int] = (end - host.gap[items] / 2).astype(np.int64).tolist()
    return middles


def host_lines(ground: Ground) -> Iterator[WhatIf]:
    """What the host does before a line, besides launching and loading, goes."""
    gaps, _ = ground.times
    lines, spare = ground.lines, _spare(ground)
    pair, of = np.unique(lines.before * len(lines.pairs) + lines.item, return_inverse=True)
    spare[_at_first_use(ground, of)] = 0.0
    spent = np.bincount(of, spare, len(pair)) / ground.window.steps
    for number in np.argsort(-spent, kind="stable").tolist()[:ROWS]:
        if spent[number] < WORTH * ground.step:
            return
        since, until = divmod(int(pair[number]), len(lines.pairs))
        if not until:
            continue
        inside = of == number
        saved = ground.saved(Changes(gaps=np.where(inside, gaps - spare, gaps)))
        place = ground.trace.places[lines.pairs[until][0]]
        begin = ground.trace.places[lines.pairs[since][0]] if since else None
        where = f"before {place.shortly}"
        if begin == place:
            where = f"between two calls of {place.shortly}"
        elif begin is not None and begin.path == place.path:
            where = f"between lines {begin.line} and {place.line} of {shortly(place.path)}"
        elif begin is not None:
            where = f"between {begin.shortly} and {place.shortly}"
        row = ground.row(
            f"the host's own work {where} is free",
            saved,
            0.0,
            saved,
            saved,
            lines=tuple(dict.fromkeys(one for one in (place, begin) if one is not None)),
            advice=own_work(spent[number]),
            word="host work",
        )
        took = float(np.where(inside & ground.timed, gaps - ground.loading, 0.0).sum()) / ground.window.steps
        ceiling = took * (2 if ground.event_graph.on_processor else 1)  # which the device has then, too
        row = replace(row, high=min(row.high, ceiling), bound=min(row.bound, ceiling))
        if begin is not None:
            own, before = _users(ground, until), _users(ground, since)
            between = None if own == before and begin != place else (before, own)
            row = replace(row, between=between, spent=float(spent[number]))
        yield row


def _at_first_use(ground: Ground, pair: NDArray[np.intp]) -> NDArray[np.intp]:
    """The host's items before which something was made ready: the first to launch a kernel there, where the host takes far less
    time before it in all later passes. `pair` numbers the lines that the host comes from and to."""
    gaps, work = ground.times[0], ground.event_graph.device_work
    kernel = np.full(len(gaps), -1, np.intp)
    kernel[work.enqueued] = ground.trace.name[work.row]
    kinds = pair * (len(ground.trace.names) + 1) + kernel
    _, first, of, count = np.unique(kinds, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(of, kind="stable")
    each = np.split(gaps[order], np.cumsum(count)[:-1])
    often = [n for n, some in enumerate(each) if len(some) >= SEVERAL and some[0] > TIMES * np.median(some)]
    return np.asarray(first[often], np.intp)


def _users(ground: Ground, line: int) -> Place:
    """The user's own line of a numbered one: of a library's, the one that led there."""
    place, caller = ground.lines.pairs[line]
    return ground.trace.places[caller if caller >= 0 else place]
