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

A piece of work grows with its rows, but for what the shortest work of the recording takes, and only from where they fill the
device (`analysis.occupancy`). How it really grows the steps do not tell: kernels work on tiles of rows, and take as long for
one more or fewer until another tile is needed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.nesting import Nesting
from syncscope.model.ops import Op
from syncscope.model.report import Read
from syncscope.model.trace import Kind, Trace

SELECTING = frozenset({Op.MASK_READ, Op.MASKED_SELECT, Op.NONZERO, Op.ARGWHERE, Op.WHERE})
PUT_BACK = re.compile(r"indexing_backward|index_put|mask_put|masked_scatter")  # kernels that put rows among all rows
EMPTY = np.zeros(0, np.intp)
Times = NDArray[np.float64]
Numbers = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class SelectedRows:
    """Rows that were selected once, by one mask: the reads (by number) that ask for them, of which each may be several.

    `work` (by number) runs over the `kept` of `rows`, as far as is known; `most` is all that may.
    """

    reads: tuple[int, ...]
    kept: int
    rows: int
    work: Numbers
    most: Numbers

    def over_all(self, durations: Times, least: float, full: Times) -> Times:
        """How long work takes over all rows that took so long over those that were kept; `least` of it does not grow, ns.

        What fills a part of the device takes no longer until it is `full`.
        """
        times = np.maximum(1.0, full * self.rows / max(1, self.kept))
        longer: Times = durations + (times - 1.0) * (durations - least).clip(0.0)
        return longer


def selections(
    trace: Trace, reads: Sequence[Read], work: Numbers, launched: NDArray[np.int64], own: Numbers
) -> list[SelectedRows]:
    """The selections of a recording.

    `work` are the rows of the device's work in the order of its launches, `launched` when each was (ns of the trace), and
    `own` the read in whose expression, or -1: that goes with its read.
    """
    steps: dict[int, list[int]] = {}
    for number, read in enumerate(reads):
        steps.setdefault(read.step, []).append(number)
    found = _Found(trace, reads, work, launched, own)
    return [one for numbers in steps.values() for one in found.of_step(numbers)]


class _Found:
    """Which work hangs on which selection."""

    def __init__(
        self, trace: Trace, reads: Sequence[Read], work: Numbers, launched: NDArray[np.int64], own: Numbers
    ) -> None:
        self._trace, self._reads, self._work, self._launched, self._own = trace, reads, work, launched, own
        puts = np.array([bool(PUT_BACK.search(name)) for name in trace.names], bool)
        self._back = np.flatnonzero(puts[trace.name[work]]) if len(work) else EMPTY
        self._shaped = _Shaped(trace)

    def of_step(self, numbers: list[int]) -> list[SelectedRows]:
        """Those of a step, whose reads these are: one for each part that is kept, for a mask may select of several tensors."""
        masks: dict[Fraction, list[tuple[int, int, int]]] = {}
        graded: list[int] = []  # those to which a gradient comes back, in order
        for number in numbers:
            read = self._reads[number]
            detail = self._trace.known(read.row) if read.row >= 0 and read.op in SELECTING else None
            if detail is None or detail.kept is None or not detail.rows or not 0 <= detail.kept <= detail.rows:
                continue
            kept, rows = int(detail.kept), int(detail.rows)
            masks.setdefault(Fraction(kept, rows), []).append((rows, kept, number))
            if detail.gradient:
                graded.append(number)
        if not masks:
            return []
        last = max(self._reads[number].end for members in masks.values() for _, _, number in members)
        over = self._next_step(numbers)
        returns = [j for j in self._back.tolist() if last < self._launched[j] < over]
        pairs = dict(zip(reversed(graded), returns, strict=False))
        unknown = returns[len(graded) :]  # positions that were asked for may have been used as an index
        return [
            self._of_mask([number for _, _, number in members], min(members)[:2], numbers, pairs, unknown, over)
            for members in masks.values()
        ]

    def _of_mask(
        self,
        members: list[int],
        of: tuple[int, int],
        numbers: list[int],
        pairs: dict[int, int],
        unknown: list[int],
        over: int,
    ) -> SelectedRows:
        rows, kept = of
        asked, window, most = set(members), EMPTY, EMPTY
        for number in members:
            since = self._reads[number].end
            starts = [self._reads[n].start for n in numbers]
            until = min((start for start in starts if start > since), default=over)
            until = int(self._launched[unknown[-1]]) if unknown else until
            if (put := pairs.get(number)) is not None:
                back = int(self._launched[put])
                window, until = np.union1d(window, self._between(since, back)), max(until, back)
                asked |= {n for n in numbers if self._own[put] == n}  # the wait of the gradient's way back
            most = np.union1d(most, self._between(since, until))
        most = most[np.isin(self._trace.kind[self._work[most]], (Kind.KERNEL, Kind.FILL))]
        if (known := self._shaped.over(self._work[most], kept)) is not None:
            most = window = most[known]
        window = np.intersect1d(window, most)
        return SelectedRows(tuple(sorted(asked)), kept, rows, window, most)

    def _next_step(self, numbers: list[int]) -> int:
        """When the first read of another step begins, after those of this one; ns."""
        after = numbers[-1] + 1
        return self._reads[after].start if after < len(self._reads) else np.iinfo(np.int64).max

    def _between(self, since: int, until: int) -> Numbers:
        """What was launched in between and belongs to no read."""
        found: Numbers = np.flatnonzero((self._launched >= since) & (self._launched < until) & (self._own < 0))
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
