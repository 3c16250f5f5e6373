"""Lines in operators' names: `comprehension::attend at train.py:12` is an operator at that line, and so is what it launched."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from syncscope.model.source import Place
from syncscope.model.trace import Kind, Table, Trace

AT = " at "  # between the name of a comprehension and the line that calls it, as kernels/comprehensions says them


def with_lines(trace: Trace) -> Trace:
    """The trace with places for such operators, their launches and their kernels; one without any stays."""
    told = {i: name for i, name in enumerate(trace.names) if name.startswith("comprehension::") and AT in name}
    rows = np.flatnonzero((trace.kind == Kind.OP) & np.isin(trace.name, list(told)))
    if not len(rows):
        return trace
    names, places, of = Table[str](), Table[Place](), dict[int, int]()
    known = [places[one] for one in trace.places]
    short = np.array([names[told[i].partition(AT)[0] if i in told else name] for i, name in enumerate(trace.names)])
    for i, text in told.items():
        path, _, number = text.partition(AT)[2].rpartition(":")
        of[i] = places[Place(path, int(number))]
    place = np.append(np.array(known, trace.place.dtype), -1)[trace.place]
    calls = np.flatnonzero(trace.kind == Kind.CALL)
    starts = trace.start[calls]
    work = np.flatnonzero(np.isin(trace.kind, (Kind.KERNEL, Kind.COPY, Kind.FILL)) & (trace.correlation >= 0))
    order = work[np.argsort(trace.correlation[work], kind="stable")]
    keys = trace.correlation[order]
    for row in rows.tolist():
        place[row] = at = of[int(trace.name[row])]
        begin, end = int(trace.start[row]), int(trace.start[row] + trace.duration[row])
        inside = calls[np.searchsorted(starts, begin) : np.searchsorted(starts, end)]
        inside = inside[trace.lane[inside] == trace.lane[row]]
        place[inside] = np.where(place[inside] < 0, at, place[inside])  # else it is known from the frames that ran
        for correlation in trace.correlation[inside].tolist():
            place[order[np.searchsorted(keys, correlation) : np.searchsorted(keys, correlation, "right")]] = at
    name = short.astype(trace.name.dtype)[trace.name]
    return replace(trace, names=tuple(names), name=name, places=tuple(places), place=place)
