"""Which operator made a call and launched its work, for viewers that join them by number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from syncscope.model.trace import DEVICE, Kind, Trace


def with_owners(trace: Trace) -> Trace:
    """The trace with `external` of every call and its device work naming the operator in which the call was made.

    Old recordings number calls on their own. A call with no operator of its number belongs to the innermost operator on
    its thread that was running; operators without a number get one.
    """
    operators, calls = trace.rows(Kind.OP), trace.rows(Kind.CALL)
    external = trace.external.copy()
    nameless = operators[external[operators] < 0]
    first = int(external.max(initial=0)) + 1
    external[nameless] = np.arange(first, first + len(nameless))
    stray = calls[~np.isin(external[calls], external[operators])]
    if not len(stray):
        return trace if not len(nameless) else replace(trace, external=external)
    for lane in np.unique(trace.lane[stray]):
        rows = np.concatenate([operators[trace.lane[operators] == lane], stray[trace.lane[stray] == lane]])
        rows.sort()
        running: list[tuple[int, int]] = []  # end and number of the operators that have begun, the innermost last
        columns = (rows, trace.start[rows], trace.end[rows], trace.kind[rows])
        for row, start, end, kind in zip(*(c.tolist() for c in columns), strict=True):
            while running and running[-1][0] <= start:
                running.pop()
            if kind == Kind.OP:
                running.append((end, int(external[row])))
            else:
                external[row] = running[-1][1] if running else -1
    work = np.flatnonzero(np.isin(trace.kind, DEVICE) & np.isin(trace.correlation, trace.correlation[stray]))
    owner = dict(zip(trace.correlation[stray].tolist(), external[stray].tolist(), strict=True))
    external[work] = [-1 if c < 0 else owner[c] for c in trace.correlation[work].tolist()]
    return replace(trace, external=external)
