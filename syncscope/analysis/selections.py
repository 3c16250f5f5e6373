"""What a fixed shape adds: the device work that runs over the rows a selection kept, and would run over all of them.

```text
host   x[mask]   head(..)   loss(..)   backward: loss, head   the gradient goes back to its rows   ...
       kept of rows |<------------ work over the kept rows ----------->|  here the shapes join again
```
What is launched after a selection, and before its gradient is put back among all rows, hangs on it: a backward pass goes
through what a forward pass did in the reverse order, so that of several selections the last is the first whose gradient comes
back. Other work may be launched in between (another loss), so this is the most that it can be; where shapes were recorded, only
operators that were given or made a dimension of that length count. Where no gradient comes back, nobody knows how far a
selection reaches: then nothing is added, and at most what runs until the host reads again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.nesting import Nesting
from syncscope.model.ops import COUNTS
from syncscope.model.report import Read
from syncscope.model.trace import Kind, Trace

PUT_BACK = re.compile(r"indexing_backward|index_put|mask_put|masked_scatter")  # kernels that put rows among all rows
EMPTY = np.zeros(0, np.intp)


@dataclass(frozen=True, slots=True)
class SelectedRows:
    """Rows that were selected once, by one mask: the reads (by number) that ask for them, of which each may be several.

    `work` (by number) runs over the `kept` of `rows`, as far as is known; `most` is all that may.
    """

    reads: tuple[int, ...]
    kept: int
    rows: int
    work: NDArray[np.intp]
    most: NDArray[np.intp]

    @property
    def ratio(self) -> float:
        """So many times as long takes what runs over all rows."""
        return self.rows / max(1, self.kept)


def selections(
    trace: Trace, reads: Sequence[Read], work: NDArray[np.intp], launched: NDArray[np.int64], own: NDArray[np.intp]
) -> list[SelectedRows]:
    """The selections of a recording.

    `work` are the rows of the device's work in the order of its launches, `launched` when each was (ns of the trace), and
    `own` the read in whose expression, or -1: that goes with its read.
    """
    steps: dict[int, list[int]] = {}
    for number, read in enumerate(reads):
        steps.setdefault(read.step, []).append(number)
    name = np.array([bool(PUT_BACK.search(name)) for name in trace.names], bool)
    back = np.flatnonzero(name[trace.name[work]]) if len(work) else EMPTY
    shaped = _Shaped(trace)
    found: list[SelectedRows] = []
    for numbers in steps.values():
        found += _of_step(trace, reads, numbers, work, launched, own, back, shaped)
    return found


def _of_step(
    trace: Trace,
    reads: Sequence[Read],
    numbers: list[int],
    work: NDArray[np.intp],
    launched: NDArray[np.int64],
    own: NDArray[np.intp],
    back: NDArray[np.intp],
    shaped: _Shaped,
) -> list[SelectedRows]:
    masks: dict[tuple[int, int], list[int]] = {}  # by what they kept of what: one mask may select of several tensors
    graded: list[int] = []  # those to which a gradient comes back, in order
    for number in numbers:
        read = reads[number]
        detail = trace.known(read.row) if read.row >= 0 and read.op in COUNTS else None
        if detail is None or detail.kept is None or detail.rows is None or not 0 <= detail.kept <= detail.rows:
            continue
        if detail.rows:
            masks.setdefault((int(detail.kept), int(detail.rows)), []).append(number)
        if detail.gradient:
            graded.append(number)
    if not masks:
        return []
    last = max(reads[number].end for members in masks.values() for number in members)
    over = _next_step(reads, numbers)
    returns = [j for j in back.tolist() if last < launched[j] < over]
    pairs = dict(zip(reversed(graded), returns, strict=False))
    found = []
    for (kept, rows), members in masks.items():
        asked = list(members)
        window = most = EMPTY
        for number in members:
            since = reads[number].end
            put = pairs.get(number)
            if put is not None:
                until = int(launched[put])
                window = np.union1d(window, _between(launched, own, since, until))
                asked += [n for n in numbers if own[put] == n]  # the wait of the gradient's way back
            until = (
                int(launched[returns[-1]])
                if returns
                else min((reads[n].start for n in numbers if reads[n].start > since), default=over)
            )
            most = np.union1d(most, _between(launched, own, since, until))
        of_kernels = np.isin(trace.kind[work[most]], (Kind.KERNEL, Kind.FILL))
        most = most[of_kernels]
        if (known := shaped.over(work[most], kept)) is not None:
            most = window = most[known]
        window = np.intersect1d(window, most)
        found.append(SelectedRows(tuple(sorted(set(asked))), kept, rows, window, most))
    return found


def _next_step(reads: Sequence[Read], numbers: list[int]) -> int:
    """When the first read of another step begins, after those of this one; ns."""
    after = numbers[-1] + 1
    return reads[after].start if after < len(reads) else np.iinfo(np.int64).max


def _between(launched: NDArray[np.int64], own: NDArray[np.intp], since: int, until: int) -> NDArray[np.intp]:
    """What was launched in between and belongs to no read."""
    found: NDArray[np.intp] = np.flatnonzero((launched >= since) & (launched < until) & (own < 0))
    return found


class _Shaped:
    """The operators whose shapes were recorded, by what they launched."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        rows = trace.rows(Kind.OP)
        self.known = any(trace.known(int(row)).input_dims for row in rows[:64].tolist())
        self._around = Nesting(trace, Kind.OP) if self.known else None
        calls = trace.rows(Kind.CALL) if self.known else EMPTY
        self._call = dict(zip(trace.correlation[calls].tolist(), calls.tolist(), strict=True))

    def over(self, work: NDArray[np.intp], length: int) -> NDArray[np.bool_] | None:
        """Of each piece of work whether its operator was given, or made, a dimension of that length; None without shapes."""
        if self._around is None:
            return None
        return np.array([self._has(row, length) for row in work.tolist()], bool)

    def _has(self, row: int, length: int) -> bool:
        trace, call = self._trace, self._call.get(int(self._trace.correlation[row]))
        if call is None or self._around is None:
            return True
        start = int(trace.start[call])
        operators = self._around.around(int(trace.lane[call]), start, start + int(trace.duration[call]))
        details = [trace.known(operator) for operator in operators]
        shapes = [d for d in details if d.input_dims or d.output_dims]
        return not shapes or any(_holds(d.input_dims, length) or _holds(d.output_dims, length) for d in shapes[-1:])


def _holds(shapes: Any, length: int) -> bool:
    """Whether a length is among the dimensions of shapes, which may be lists of shapes."""
    if isinstance(shapes, (list, tuple)):
        return any(_holds(one, length) for one in shapes)
    return bool(shapes == length)
