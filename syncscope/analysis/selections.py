"""What a fixed shape adds: the device work that runs over the rows a selection kept, and would run over all of them.

```text
host   x[mask]   head(..)   loss(..)   backward: loss, head   the gradient goes back to its rows   ...
       kept of rows |<------------ work over the kept rows ----------->|  here the shapes join again
```
What is launched after a selection, and before its gradient is put back among all rows, hangs on it: a backward pass goes
through what a forward pass did in the reverse order, so that of several selections the last is the first whose gradient comes
back. Other work may be launched in between (another loss), so this is the most that it can be; where shapes were recorded, only
operators that were given or made a dimension of that length count. Where no gradient comes back, nobody knows how far a
selection reaches: then what is launched with more threads in each step in which more rows are kept does, for rows of an input
need no gradient, but the weights that they meet do; and at most what runs until the host reads again, too.

Such work grows with its rows as far as its steps tell (`analysis.growth`), but for what the shortest work of its kind
takes, and only from where they fill the device (`analysis.occupancy`). What would then be given more than the device's memory
holds was not given the rows: it does not grow. The gradient's way back goes with the selection. So it
does for positions (`nonzero`) that were an index, which shows in more gradients coming back than masks ask for; the index
itself stays, for the weights or the padding that take its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.growth import growth, launched_by_rows
from syncscope.analysis.nesting import Nesting
from syncscope.analysis.occupancy import fits
from syncscope.model.ops import Op
from syncscope.model.report import Read
from syncscope.model.trace import Kind, Trace

POSITIONS = frozenset({Op.NONZERO, Op.ARGWHERE, Op.WHERE})
SELECTING = POSITIONS | {Op.MASK_READ, Op.MASKED_SELECT}
PUT_BACK = re.compile(r"indexing_backward|index_put|mask_put|masked_scatter")  # kernels that put rows among all rows
PUTTING = re.compile(r"index_put|mask_put|masked_scatter|IndexBackward|MaskedSelectBackward")  # operators that do that
# kernels that take rows by their positions
GATHERED = re.compile(r"gather|index_elementwise|index_kernel", re.IGNORECASE)
SORTED = re.compile(r"<long\b|radix_sort|arange|^Memset")  # kernels that sort positions before rows are put to them
ZEROED = re.compile(r"fill|^Memset", re.IGNORECASE)  # what makes what they are put into
LAID_OUT = re.compile(r"copy", re.IGNORECASE)  # kernels that lay out a tensor otherwise
EMPTY = np.zeros(0, np.intp)
Times = NDArray[np.float64]
Numbers = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class SelectedRows:
    """Rows that were selected once, by one mask: the reads (by number) that ask for them, of which each may be several.

    `work` (by number) runs over the `kept` of `rows`, as far as is known; `most` is all that may, `grows` the part of each
    of these that takes longer over more rows, and `usual` how long each takes over as many, ns. `back` is the gradient's way
    back to its rows, where no read does that. `told` says that launches tell of `work`: then it surely runs over rows.
    """

    reads: tuple[int, ...]
    kept: int
    rows: int
    work: Numbers
    most: Numbers
    back: Numbers
    grows: Times = field(default_factory=lambda: np.zeros(0))
    usual: Times = field(default_factory=lambda: np.zeros(0))
    told: bool = False

    @property
    def times(self) -> float:
        """How many times as many rows there are as were kept."""
        return self.rows / max(1, self.kept)

    def over_all(self, over: Numbers, durations: Times, least: Times, full: Times) -> Times:
        """How long work (some of `most`, by number) takes over all rows that took so long over those that were kept, ns.

        `least` of it does not grow. What fills a part of the device takes no longer until it is `full`.
        """
        at = np.searchsorted(self.most, over)
        times = np.maximum(1.0, full * self.times)
        longer: Times = durations + self.grows[at] * (times - 1.0) * (self.usual[at] - least).clip(0.0)
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
    plain = found.by_launch([one for numbers in steps.values() for one in found.of_step(numbers)], steps)
    grows = growth(trace, [work[one.most] for one in plain], [one.kept for one in plain])
    return [
        replace(one, grows=part * fits(trace, work[one.most], one.times), usual=usual)
        for one, (part, usual) in zip(plain, grows, strict=True)
    ]


class _Found:
    """Which work hangs on which selection."""

    def __init__(
        self, trace: Trace, reads: Sequence[Read], work: Numbers, launched: NDArray[np.int64], own: Numbers
    ) -> None:
        self._trace, self._reads, self._work, self._launched, self._own = trace, reads, work, launched, own
        puts = np.array([bool(PUT_BACK.search(name)) for name in trace.names], bool)
        self._back = np.flatnonzero(puts[trace.name[work]]) if len(work) else EMPTY
        self._operators = _Operators(trace)

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
        asked = [n for members in masks.values() for _, _, n in members if self._reads[n].op in POSITIONS]
        # what is selected after the backward pass, for an accuracy, keeps no gradient waiting
        ending = [*graded, *asked] if graded else [n for members in masks.values() for _, _, n in members]
        last = max(self._reads[number].end for number in ending)
        over = self._next_step(numbers)
        returns = [j for j in self._back.tolist() if last < self._launched[j] < over]
        pairs = {number: [put] for number, put in zip(reversed(graded), returns, strict=False)}
        unknown = returns[len(graded) :]
        if asked and unknown:  # the positions may have been an index, whose last use returns first
            taken = self._between(self._reads[asked[0]].end, int(self._launched[unknown[0]]))
            uses = sum(bool(GATHERED.search(self._name(work))) for work in taken.tolist())
            pairs |= dict.fromkeys(asked, unknown[:uses])
        return [
            self._of_mask([number for _, _, number in members], min(members)[:2], numbers, pairs, over)
            for members in masks.values()
        ]

    def by_launch(self, plain: list[SelectedRows], steps: Mapping[int, list[int]]) -> list[SelectedRows]:
        """The selections to which no gradient comes back with the work whose launches tell that it is over their rows."""
        unknown = [number for number, one in enumerate(plain) if not len(one.work) and not len(one.back)]
        after = []
        for number in unknown:
            first = self._reads[plain[number].reads[0]]
            after.append(self._between(first.end, self._next_step(steps[first.step])))
        told = launched_by_rows(self._trace, [self._work[of] for of in after], [plain[n].kept for n in unknown])
        found = list(plain)
        for number, of, by_rows in zip(unknown, after, told, strict=True):
            one = plain[number]
            work, told_so = of[by_rows], bool(by_rows.any())
            found[number] = replace(one, work=work, most=np.union1d(one.most, work), told=told_so)
        return found

    def _of_mask(
        self,
        members: list[int],
        of: tuple[int, int],
        numbers: list[int],
        pairs: dict[int, list[int]],
        over: int,
    ) -> SelectedRows:
        rows, kept = of
        asked, window, most, back = set(members), EMPTY, EMPTY, EMPTY
        for number in members:
            since = self._reads[number].end
            starts = [self._reads[n].start for n in numbers]
            until = min((start for start in starts if start > since), default=over)
            if puts := pairs.get(number):
                until = max(int(self._launched[put]) for put in puts)
                window = np.union1d(window, self._between(since, until))
            for put in puts or ():
                asked |= {n for n in numbers if self._own[put] == n}  # the wait of the gradient's way back
                back = np.union1d(back, self._way_back(put, number))
            most = np.union1d(most, self._between(since, until))
        most = most[np.isin(self._trace.kind[self._work[most]], (Kind.KERNEL, Kind.FILL))]
        if (known := self._operators.over(self._work[most], kept)) is not None:
            most = window = most[known]
        most = np.setdiff1d(most, back)
        window = np.intersect1d(window, most)
        return SelectedRows(tuple(sorted(asked)), kept, rows, window, most, back)

    def _way_back(self, put: int, read: int) -> Numbers:
        """What goes with the kernel that puts a gradient back: all that its operator launched, where no read has it.

        And the zeros that it is put into, and what undoes then how the read had to lay its tensor out before it could select:
        the same copy, right after it.
        """
        if self._own[put] < 0:
            found = self._operators.launched_by(PUTTING, put, self._work, self._launched)
            found = self._run_up(put, SORTED) if not len(found) else found[self._own[found] < 0]
            first, last = int(found.min(initial=put)), int(found.max(initial=put))
        else:
            of = np.flatnonzero(self._own == self._own[put])
            found, first, last = EMPTY, int(of.min()), int(of.max())
        if first and self._own[first - 1] < 0 and ZEROED.search(self._name(first - 1)):
            found = np.append(first - 1, found)
        laid_out = {n for n in map(self._name, np.flatnonzero(self._own == read).tolist()) if LAID_OUT.search(n)}
        if last + 1 < len(self._work) and self._name(last + 1) in laid_out:
            found = np.append(found, last + 1)
        return found

    def _run_up(self, work: int, named: re.Pattern[str]) -> Numbers:
        """A piece of work, and all of such a name that is launched right before it."""
        first = work
        while first and self._own[first - 1] < 0 and named.search(self._name(first - 1)):
            first -= 1
        return np.arange(first, work + 1)

    def _name(self, work: int) -> str:
        """What a piece of work is called."""
        name: str = self._trace.names[self._trace.name[self._work[work]]]
        return name

    def _next_step(self, numbers: list[int]) -> int:
        """When the first read of another step begins, after those of this one; ns."""
        after = numbers[-1] + 1
        return self._reads[after].start if after < len(self._reads) else np.iinfo(np.int64).max

    def _between(self, since: int, until: int) -> Numbers:
        """What was launched in between and belongs to no read."""
        found: Numbers = np.flatnonzero((self._launched >= since) & (self._launched < until) & (self._own < 0))
        return found


class _Operators:
    """The operators of a recording, by what they launched."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        rows = trace.rows(Kind.OP)
        self._around = Nesting(trace, Kind.OP) if len(rows) else None
        self._shapes = any(trace.known(int(row)).input_dims for row in rows[:64].tolist())
        self._any = len(rows) > 0

    @cached_property
    def _call(self) -> dict[int, int]:
        """The calls by their correlation."""
        trace = self._trace
        calls = trace.rows(Kind.CALL) if self._any else EMPTY
        return dict(zip(trace.correlation[calls].tolist(), calls.tolist(), strict=True))

    def around(self, work: int) -> list[int]:
        """Those in which a piece of work (a row of the trace) was launched, outermost first."""
        trace, call = self._trace, self._call.get(int(self._trace.correlation[work]))
        if call is None or self._around is None:
            return []
        return self._around.around(
            int(trace.lane[call]), int(trace.start[call]), int(trace.start[call] + trace.duration[call])
        )

    def launched_by(self, named: re.Pattern[str], number: int, work: Numbers, launched: NDArray[np.int64]) -> Numbers:
        """The work (by number) of the outermost operator of such a name that launched this piece; none without it."""
        trace = self._trace
        of = [row for row in self.around(int(work[number])) if named.search(trace.names[trace.name[row]])]
        if not of:
            return EMPTY
        start, lane = int(trace.start[of[0]]), trace.lane[of[0]]
        inside = np.flatnonzero((launched >= start) & (launched <= start + int(trace.duration[of[0]])))
        return np.array(
            [n for n in inside.tolist() if trace.lane[self._call[int(trace.correlation[work[n]])]] == lane], np.intp
        )

    def over(self, work: NDArray[np.intp], length: int) -> NDArray[np.bool_] | None:
        """Of each piece of work whether its operator was given, or made, a dimension of that length; None without shapes."""
        return np.array([self._has(row, length) for row in work.tolist()], bool) if self._shapes else None

    def _has(self, row: int, length: int) -> bool:
        details = [self._trace.known(operator) for operator in self.around(row)]
        shapes = [d for d in details if d.input_dims or d.output_dims]
        return not shapes or any(_holds(d.input_dims, length) or _holds(d.output_dims, length) for d in shapes[-1:])


def _holds(shapes: Any, length: int) -> bool:
    """Whether a length is among the dimensions of shapes, which may be lists of shapes."""
    if isinstance(shapes, (list, tuple)):
        return any(_holds(one, length) for one in shapes)
    return bool(shapes == length)
