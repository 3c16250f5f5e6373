"""The events of a recording for the page's canvas: sorted into rows, as packed columns."""

from __future__ import annotations

import base64
import gzip
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncscope.exporters._xplane import WAITS
from syncscope.exporters.tensorboard import fit, merged, waits, without_waits
from syncscope.model.report import Report
from syncscope.model.trace import Kind, Trace

MOST_EVENTS = 300_000  # about 3 MB of page
DEEPEST = 40  # levels of calls in calls that are shown


def timeline(report: Report) -> dict[str, Any] | None:
    """Lanes, rows and names as JSON, the events as base64 of gzip of columns; None where nothing was recorded.

    A row is `[lane, depth, first event, number of events]`; its events are sorted and do not overlap. The columns follow one
    another: start (float64, ns since `origin`), duration (float32, ns), name (uint32), kind (uint8).
    """
    if report.trace is None or not len(report.trace):
        return None
    trace = fit(without_waits(report.trace), MOST_EVENTS)
    notes = trace.meta.get("notes", [])[len(report.trace.meta.get("notes", [])) :]
    if (trace.kind == Kind.PYTHON).any():
        notes.append("the timeline has no Python calls; --format tensorboard shows them")
    trace = merged(trace.take(~np.isin(trace.kind, (Kind.PYTHON, Kind.OTHER))), waits(report))
    if not len(trace):
        return None
    depth = depths(trace)
    trace, depth = trace.take(depth < DEEPEST), depth[depth < DEEPEST]
    rank = np.array([order(trace, number) for number in range(len(trace.lanes))])[trace.lane]
    by_row = np.lexsort((trace.start, depth, trace.lane, rank))
    trace, depth = trace.take(by_row), depth[by_row]
    key = trace.lane.astype(np.int64) * DEEPEST + depth
    first = np.flatnonzero(np.diff(key, prepend=-1))
    count = np.diff(first, append=len(key))
    used = np.unique(trace.name)
    names = np.searchsorted(used, trace.name)
    origin = int(trace.start.min())
    columns = (
        (trace.start - origin).astype("<f8"),
        trace.duration.astype("<f4"),
        names.astype("<u4"),
        trace.kind.astype("u1"),
    )
    packed = gzip.compress(b"".join(column.tobytes() for column in columns), 6, mtime=0)
    return {
        "events": len(trace),
        "origin": origin,
        "end": int(trace.end.max()) - origin,
        "lanes": [
            {"label": lane.label or f"{'queue' if lane.device >= 0 else 'thread'} {lane.thread}", "device": lane.device}
            for lane in trace.lanes
        ],
        "rows": np.stack([trace.lane[first], depth[first], first, count], axis=1).tolist(),
        "names": [trace.names[number] for number in used.tolist()],
        "kinds": [kind.name.lower() for kind in Kind],
        "columns": base64.b64encode(packed).decode(),
        "notes": notes,
    }


def order(trace: Trace, number: int) -> int:
    """Waits first, then devices, then the host."""
    lane = trace.lanes[number]
    return 0 if lane.label.startswith(WAITS) else 1 if lane.device >= 0 else 2


def depths(trace: Trace) -> NDArray[np.int64]:
    """How many events of its lane are running when an event starts."""
    depth = np.zeros(len(trace), np.int64)
    for lane in np.unique(trace.lane):
        rows = np.flatnonzero(trace.lane == lane)
        running: list[int] = []  # the end of each event that runs, a free level once that has passed
        for row, start, end in zip(rows.tolist(), trace.start[rows].tolist(), trace.end[rows].tolist(), strict=True):
            while running and running[-1] <= start:
                running.pop()
            depth[row] = len(running)
            running.append(end)
    return depth
