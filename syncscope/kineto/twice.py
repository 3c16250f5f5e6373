"""Files in which events stand more than once, as where a profiler's export was appended to itself, or two parts overlap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncscope.model.trace import Kind, Trace

TELLING = ("kind", "name", "lane", "start", "duration", "correlation")


def once(trace: Trace) -> Trace:
    """The trace with each event once, and a note, where calls of the driver stand in it twice: a call's number is its own.

    Without such a call nothing is looked for, for short events of one name may well begin together.
    """
    if not _calls_again(trace).any():
        return trace
    kept = _firsts([getattr(trace, name) for name in (*TELLING, "external", "bytes", "place")])
    gone = len(trace) - int(kept.sum())
    told = f"{gone:,} events stand in the file more than once: each is used once"
    memory = trace.memory
    if memory is not None:
        memory = memory.take(_firsts(list(memory.columns().values())))
    notes = [*(trace.meta.get("notes") or ()), told]
    return replace(trace.take(kept), memory=memory, meta={**trace.meta, "notes": notes})


def _calls_again(trace: Trace) -> NDArray[np.bool_]:
    """Which rows are calls of the driver that the row before them is, too."""
    again: NDArray[np.bool_] = (trace.kind[1:] == Kind.CALL) & (trace.correlation[1:] > 0)
    for name in TELLING:
        column = getattr(trace, name)
        again &= column[1:] == column[:-1]
    return again


def _firsts(columns: list[NDArray[Any]]) -> NDArray[np.bool_]:
    """Which rows no earlier one is like in all of these."""
    order = np.lexsort(columns)  # rows that are alike stay in their order
    same = np.ones(max(0, len(order) - 1), bool)
    for column in columns:
        same &= column[order[1:]] == column[order[:-1]]
    kept = np.ones(len(order), bool)
    kept[order[1:][same]] = False
    return kept
