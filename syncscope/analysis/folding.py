"""Launches in a row, folded into runs: all runs of a recording side by side.

With the host at `h` and a queue free at `q`, a launch leaves the queue free at max(h + latency, q + gap) + duration: linear in
the algebra of max and +. So a whole row of launches is one such step again, and a replay of a recording costs as many steps as
it has waits, not launches. A row ends where somebody needs to know of one launch in it, or the host waits:

```text
host       [a][b][c]   [d]   [e][f]   [ wait ]  [g][h]
                        |  waits for another queue
stretches  [ run   ]   [d]   [run ]   [ hold ]  [run ]
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.entries import Hold, HostOrder, RunColumns
from syncscope.analysis.graph import NEVER

LONGEST = 256  # launches folded into one
PARTS = 16  # into so many a full queue is folded: within one of them it does not stop the host
AT_ONCE = 1 << 20  # runs times queues that are laid out together
LONG = 1024  # moments of the host in one stretch from which on it is added up by itself
Numbers = NDArray[np.intp]
Times = NDArray[np.float64]
Truths = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Enqueued:
    """Device work in the order of its launches, a column for each field of a `Launch`, and the `item` of the host that
    launches it. `apart` is what is not folded, `needed` what others wait for."""

    item: Numbers
    latency: Times
    queue: NDArray[np.int32]
    gap: Times
    duration: Times
    source: Numbers
    lag: Times
    collective: Numbers
    read: Numbers
    left: Times
    spare: Times
    needed: Truths

    @property
    def apart(self) -> Truths:
        """Launches of which somebody needs to know: they wait for other queues or ranks, or go with a read."""
        known: Truths = (self.source >= 0) | (self.collective >= 0) | (self.read >= 0)
        return known


@dataclass(frozen=True, slots=True)
class _Stretches:
    """Where rows of launches end: before the launch `upto`, after `until` of the host's times (two an item).

    `launch` is the launch apart that follows, `hold` the item that waits (or the end of a step); -1: neither.
    """

    until: Numbers
    upto: Numbers
    launch: Numbers
    hold: Numbers

    @property
    def since(self) -> Numbers:
        """How many of the host's times lie before each."""
        return np.append(0, self.until[:-1])

    @property
    def first(self) -> Numbers:
        """Its first launch."""
        return np.append(0, self.upto[:-1] + (self.launch[:-1] >= 0))


def folded(
    work: Enqueued, gaps: Times, cost: Times, holds: Numbers, depth: int, hold: Callable[[int, float, int, int], Hold]
) -> HostOrder:
    """The host's order: `gaps` before each of its items and `cost` in it, ns, where the items `holds` wait.

    `hold(item, host_gap, position, launched)` makes one entry of these, at a position in the order; `launched` says whether
    something is launched after it.
    """
    if not len(gaps):  # nothing is known of the host, nor by what the work was launched
        return HostOrder.of(())
    count = len(work.item)
    longest = LONGEST if count <= depth else max(1, min(LONGEST, depth // PARTS))
    stretches = _stretches(work, holds, len(gaps), longest)
    times = np.stack([gaps, cost], axis=1).reshape(-1)
    so_far = _added_up(times, stretches)
    since, first = stretches.since, stretches.first
    spent = np.zeros(len(since))  # by the host in each
    worked = stretches.until > since
    spent[worked] = so_far[stretches.until[worked] - 1]
    filled = stretches.upto > first
    filled[-1] |= spent[-1] != 0  # what the host did after all else
    entered = (stretches.launch >= 0) | (stretches.hold >= 0)
    position = np.cumsum(filled * 1 + entered) - entered  # of what ends each stretch, after its run
    left = np.where(filled, 0.0, spent)  # of the host's time, where no run has it
    runs, run_at = _runs(work, stretches, filled, so_far, spent), position[filled] - 1
    at = np.flatnonzero(stretches.hold >= 0)
    facts = stretches.hold[at].tolist(), left[at].tolist(), position[at].tolist(), (stretches.upto[at] < count).tolist()
    waits = [hold(item, gap, where, int(more)) for item, gap, where, more in zip(*facts, strict=True)]
    apart = np.flatnonzero(stretches.launch >= 0)
    j = stretches.launch[apart]
    number = np.where(work.needed[j], j, -1)
    columns = (
        left[apart], work.latency[j], work.queue[j], work.gap[j], work.duration[j], work.source[j], work.lag[j],
        work.collective[j], number, j + 1, work.read[j], work.left[j], work.spare[j],
    )  # fmt: skip
    return HostOrder(columns, runs, waits, (run_at, position[at]))


def _stretches(work: Enqueued, holds: Numbers, items: int, longest: int) -> _Stretches:
    apart = np.flatnonzero(work.apart)
    after = np.searchsorted(work.item, holds, side="right")  # launches before each wait
    within = np.array(list(_breaks(work, apart, after, longest)), np.intp)
    nothing = np.full(len(within), -1, np.intp)
    item = np.concatenate([holds, work.item[apart], work.item[within], [items - 1]]).astype(np.intp)
    upto = np.concatenate([after, apart, within, [len(work.item)]]).astype(np.intp)
    launch = np.concatenate([np.full(len(holds), -1), apart, nothing, [-1]]).astype(np.intp)
    hold = np.concatenate([holds, np.full(len(apart), -1), nothing, [-1]]).astype(np.intp)
    until = 2 * item + 1  # what the host did in an item comes after its launches; a wait has none of it
    until[-1] = 2 * items
    turn = np.concatenate([np.ones(len(holds)), np.zeros(len(apart) + len(within)), [2]])
    order = np.lexsort((upto, turn, item))
    return _Stretches(until[order], upto[order], launch[order], hold[order])


def _breaks(work: Enqueued, apart: Numbers, after: Numbers, longest: int) -> Iterator[int]:
    """The launches before which a row is cut: it is long, or the next of a queue of whose last one somebody needs to know."""
    count = len(work.item)
    stretch = np.zeros(count + 1, np.intp)
    np.add.at(stretch, apart, 1)
    np.add.at(stretch, apart + 1, 1)
    np.add.at(stretch, after, 1)
    stretch = np.cumsum(stretch)[:-1]  # launches of the same number stand in one row
    order = np.lexsort((np.arange(count), work.queue))
    same = work.queue[order][1:] == work.queue[order][:-1]
    following = np.full(count, count, np.intp)  # the next in the same queue
    following[order[:-1][same]] = order[1:][same]
    known = np.flatnonzero(work.needed & (following < count))
    known = known[stretch[known] == stretch[following[known]]]
    known = known[np.argsort(following[known], kind="stable")]
    begins = np.flatnonzero(np.diff(stretch, prepend=-1)) if count else np.zeros(0, np.intp)
    lengths = np.diff(np.append(begins, count))
    cut = np.zeros(len(begins), bool)
    cut[lengths > longest] = True
    cut[np.searchsorted(begins, known, side="right") - 1] = True
    bounds = np.searchsorted(following[known], [begins[cut], begins[cut] + lengths[cut]])
    next_ones, needed = following[known].tolist(), known.tolist()
    for begin, length, low, high in zip(begins[cut].tolist(), lengths[cut].tolist(), *bounds.tolist(), strict=True):
        for at, before in zip([*next_ones[low:high], begin + length], [*needed[low:high], -1], strict=True):
            while begin + longest < at:
                begin += longest
                yield begin
            if before >= begin or (before >= 0 and begin + longest == at):
                begin = at
                yield begin


def _added_up(times: Times, stretches: _Stretches) -> Times:
    """The host's time in its stretch after each of these, added one after the other as a replay does."""
    found = times.copy()
    since, lengths = stretches.since, stretches.until - stretches.since
    for at in np.flatnonzero(lengths > LONG).tolist():
        part = slice(int(since[at]), int(stretches.until[at]))
        found[part] = np.cumsum(times[part])
    for row, active in _side_by_side(np.where(lengths > LONG, 0, lengths)):
        if row:
            after = since[active] + row
            found[after] = found[after - 1] + times[after]
    return found


def _side_by_side(lengths: Numbers) -> Iterator[tuple[int, Numbers]]:
    """Each number below the longest, and which are longer."""
    order = np.argsort(-lengths, kind="stable")
    left = np.searchsorted(-lengths[order], -np.arange(int(lengths.max(initial=0))), side="left")
    for row, many in enumerate(left.tolist()):
        yield row, order[:many]


def _runs(work: Enqueued, stretches: _Stretches, filled: Truths, so_far: Times, spent: Times) -> RunColumns:
    """A run for each of the stretches that are filled."""
    chosen = np.flatnonzero(filled)
    queues = int(work.queue.max(initial=-1)) + 1
    began, moves = 2 * work.item, list[tuple[NDArray[Any], ...]]()
    many = [np.zeros(1, np.intp)]  # moves of each run
    for part in np.array_split(chosen, len(chosen) * queues // AT_ONCE + 1):
        first, upto, since = stretches.first[part], stretches.upto[part], stretches.since[part]
        from_host, from_queue = np.full((len(part), queues), NEVER), np.zeros((len(part), queues))
        number, taken = np.full((len(part), queues), -1, np.intp), np.zeros((len(part), queues), bool)
        for row, active in _side_by_side(upto - first):
            j = first[active] + row
            where = active, work.queue[j]
            host = np.where(began[j] >= since[active], so_far[began[j]], 0.0)
            start = np.maximum(host + work.latency[j], from_host[where] + work.gap[j])
            from_host[where] = start + work.duration[j]
            from_queue[where] = from_queue[where] + work.gap[j] + work.duration[j]
            number[where] = np.where(work.needed[j], j, number[where])
            taken[where] = True
        moves.append((np.nonzero(taken)[1], from_host[taken], from_queue[taken], number[taken]))
        many.append(taken.sum(axis=1))
    upto = stretches.upto[chosen]
    last = np.append(work.queue, 0)[upto - 1], np.append(work.duration, 0.0)[upto - 1]  # nothing may have been launched
    together = (np.concatenate(column) for column in zip(*moves, strict=True))
    return RunColumns(spent[chosen], upto, *last, np.cumsum(np.concatenate(many)), tuple(together))
