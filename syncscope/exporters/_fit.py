"""A recording cut down to what a viewer can hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from syncscope.model.trace import DEVICE, Flag, Kind, Trace


def fit(trace: Trace, most: int, of: str = "events") -> Trace:
    """At most so many events, and those that matter: what waits first, then the device's work and its launches, then the rest
    by its length. `of` says what they are counted as."""
    if len(trace) <= most:
        return trace
    waits = np.isin(trace.kind, (Kind.STEP, Kind.READ, Kind.SYNC)) | (trace.flags & Flag.BLOCKING > 0)
    work = np.isin(trace.kind, DEVICE)
    launches = (trace.kind == Kind.CALL) & np.isin(trace.correlation, trace.correlation[work])
    tier = np.select([waits, work | launches, trace.kind == Kind.ANNOTATION], [0, 1, 2], 3)
    order = np.lexsort((-trace.duration, tier))
    kept = np.sort(order[: max(most, int(waits.sum()))])
    left_out = f"{len(trace) - len(kept):,} of {len(trace):,} {of}"
    note = f"{left_out} left out, the shortest first; --steps A:B has part of it in full"
    return replace(trace.take(kept), meta={**trace.meta, "notes": [*trace.meta.get("notes", []), note]})
