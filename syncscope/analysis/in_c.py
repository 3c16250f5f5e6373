"""replays.c, where it can be used: replays in a hundredth of the time that Python takes, and equal to the last bit."""

from __future__ import annotations

import ctypes as c
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.entries import firsts
from syncscope.analysis.graph import Graph
from syncscope.errors import UserError
from syncscope.native import built

SOURCE = Path(__file__).with_name("replays.c")
Times = NDArray[np.float64]
Moved = Mapping[int, tuple[int, ...]]


@cache
def library() -> Any:
    """The compiled part; None without a compiler, or where nothing may be written."""
    try:
        found = c.CDLL(str(built(SOURCE)))
    except (OSError, UserError):
        return None
    found.replays.restype = None
    return found


def replays(
    graph: Graph, out: NDArray[np.bool_], moved: Moved, at_step_end: Moved, drained: bool = False
) -> tuple[Times, Times]:
    """The ends of so many replays, and of the steps in each: as `replay` has them where `out[s]` are the reads that are taken
    out, and after them the sets of reads that are `together`."""
    stream = graph.stream
    runs, holds, launches = stream.runs, stream.holds, len(stream.launches[0])
    works = 1 + max(int(number.max(initial=-1)) for number in (stream.launches[8], runs.moves[-1]))
    depth = graph.depth if graph.ops > graph.depth else 0
    targets = [hold.targets for hold in stream.waits]
    for position, others in moved.items():
        targets[stream.hold_at(position)] = others
    waited_for = _rows(targets)
    at_end = _rows([at_step_end.get(number, ()) for number in range(int(holds.mark.max(initial=-1)) + 1)])
    end, ends = np.empty(len(out)), np.empty((len(out), int((holds.mark >= 0).sum())))
    room = 1 + len(stream)
    after, which = stream.after, stream.which
    library().replays(
        _struct(*stream.launches, after, which, *runs[:5], *runs.moves, *holds),
        np.array([launches, len(which), len(graph.free), works, depth], np.int64).ctypes,
        np.array(graph.free, float).ctypes,
        _struct(*waited_for),
        _struct(*at_end),
        c.c_int64(drained),
        c.c_int64(len(out)),
        c.c_int64(out.shape[1]),
        np.ascontiguousarray(out).ctypes,
        *(np.empty(size).ctypes for size in (len(graph.free), works, room)),
        np.empty(room, np.int32).ctypes,
        end.ctypes,
        ends.ctypes,
    )
    return end, ends


def _struct(*columns: NDArray[Any]) -> Any:
    """A struct of their addresses."""
    return (c.c_void_p * len(columns))(*(column.ctypes.data for column in columns))


def _rows(rows: Sequence[tuple[int, ...]]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Where each row begins and the last one ends, and what stands in them."""
    return firsts(rows), np.array([*chain.from_iterable(rows)], np.int32)
