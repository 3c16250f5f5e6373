"""Which ranks take part in collectives of which no recording says that.

NCCL has a queue for each group, so the collectives of one queue are of one group mostly. Of two ranks those queues are of one
group on which as many collectives of the same kinds and sizes run in the same order, and end together: a collective ends at one
moment everywhere, within microseconds, while groups of other ranks that do the same work drift apart by hundreds. How far the
clocks of two ranks are apart is not known before, so that offset is taken at which most of their queues find their like.

How many microseconds depends on the network: of several tolerances the first is taken by which groups that do the same have as
many ranks each, as those of a mesh do. Nearly all has to end together first, then most of it.

What ends with nothing, or with several groups alike, is of a group that nobody knows: it is not matched, and no rank is blamed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.collectives import Collective
from syncscope.analysis.late_begins import whole_steps
from syncscope.analysis.meeting_key import MeetingKey, OfKind
from syncscope.analysis.members import in_short
from syncscope.analysis.rank import Rank

TOGETHER = (15_000, 50_000, 5_000)  # ns between the ends of a collective on two ranks; of eight V100 up to 7,000
MOST = 0.7  # of the collectives of two queues that end together, where they are of one group
NEARLY_ALL = 0.9  # ... and nothing was lost: groups that others keep together have most of their ends in common, too
CLEARLY = 0.1  # by which one group fits better than another
STRONG = 8  # collectives of a queue that count for the offset of a clock: more are not surer
# that have to, where not all ranks are one group: the first of them sets the clock, and agrees with anything
SURELY = 4
PAIRS = 1 << 20  # of ends that are compared where some were lost
NAMED = 6  # groups in a note
UNEVEN = ("SendRecv", "all_to_all")  # kinds of which each rank sends another amount

Alike = tuple[int, str, int, int]
"""What is the same of a collective on all its ranks: step and kind, elements, and the size of the group."""
_Queue = tuple[int, int]  # position of the rank, and its queue


@dataclass(frozen=True, slots=True)
class _Ends:
    """When the collectives of a queue end; `does` says of which kinds these are, and how many of each, which stand in order.
    `steps` are those that its rank has whole."""

    does: tuple[tuple[Alike, int], ...]
    times: NDArray[np.float64]
    steps: frozenset[int] = frozenset()

    def later(self, by: float) -> _Ends:
        """The same on another clock."""
        return replace(self, times=self.times + by)

    def kinds(self) -> dict[Alike, NDArray[np.float64]]:
        """The ends of each kind."""
        bounds = np.cumsum([0, *(count for _, count in self.does)])
        return {kind: self.times[a:b] for (kind, _), (a, b) in zip(self.does, pairwise(bounds), strict=True)}

    def of(self, steps: frozenset[int]) -> _Ends:
        """Those in these steps."""
        if steps == self.steps:
            return self
        inside = {kind: times for kind, times in self.kinds().items() if kind[0] in steps}
        does = tuple((kind, len(times)) for kind, times in inside.items())
        return _Ends(does, np.concatenate([np.zeros(0), *inside.values()]), steps)


@dataclass(slots=True, eq=False)
class _Group:
    """Queues of several ranks, one of each, on which the same collectives run; `ends` are of the clock of the first of them."""

    ends: _Ends
    queues: list[_Queue]
    weak: bool = False  # a rank was put to it whose clock is known by too few collectives


@dataclass(slots=True)
class _Grouped:
    """The groups that were found, and the queues that may be of several."""

    groups: list[_Group] = field(default_factory=list)
    doubtful: list[_Queue] = field(default_factory=list)

    def add(self, r: int, queue: int, ends: _Ends, near: int, sure: bool, least: float) -> None:
        """Put a queue to the group with which it ends (where nothing was lost, at `least` so much of it), else into one of its
        own; whether its clock is `sure`."""
        shares = sorted(((_share(group.ends, ends, near), n) for n, group in enumerate(self.groups)), reverse=True)
        fits = [(share, self.groups[n]) for share, n in shares if share >= MOST]
        fits = [(share, group) for share, group in fits if share >= least or _lost(group.ends, ends)]
        if len(fits) > 1 and fits[0][0] < fits[1][0] + CLEARLY:
            self.doubtful.append((r, queue))
        elif fits and all(r != other for other, _ in fits[0][1].queues):
            fits[0][1].queues.append((r, queue))
            fits[0][1].weak |= not sure
        else:
            self.groups.append(_Group(ends, [(r, queue)]))


def with_groups(ranks: Sequence[Rank]) -> tuple[list[Rank], list[str]]:
    """The ranks, with the group that was found in the key of each collective that names none, and what is to be said of it."""
    grouped = _regular(ranks)
    every = {rank.number for rank in ranks}
    whole = _whole(ranks)
    label = {
        (r, one.queue): f"of rank {rank.number}"
        for r, rank in enumerate(ranks)
        for one in rank.collectives
        if not one.told
    }
    found: dict[tuple[int, ...], None] = {}
    known: set[_Queue] = set()
    for group in grouped.groups:
        members = tuple(sorted(ranks[r].number for r, _ in group.queues))
        sizes = {size for (*_, size), _ in group.ends.does if size}
        other = any(size < len(members) or (whole and size != len(members)) for size in sizes)
        if len(members) > 1 and not other:
            found[members] = None
            known.update(group.queues)
            label |= dict.fromkeys(group.queues, "" if every == set(members) else in_short(members))
    return [_labelled(rank, r, label) for r, rank in enumerate(ranks)], list(_said(ranks, list(found), label, known))


def _whole(ranks: Sequence[Rank]) -> bool:
    """Whether all ranks of the job are here, as far as they say how many it has."""
    return len(ranks) >= max(rank.world for rank in ranks)


def _said(
    ranks: Sequence[Rank], found: Sequence[tuple[int, ...]], label: Mapping[_Queue, str], known: Container[_Queue]
) -> Iterator[str]:
    """Which groups were found, where not all ranks are one."""
    untold = [(r, one.queue) for r, rank in enumerate(ranks) for one in rank.collectives if not one.told]
    if len(ranks) == 1 or not any(label[queue] for queue in untold):
        return
    named = "; ".join(map(in_short, found[:NAMED])) + f" and {len(found) - NAMED} more" * (len(found) > NAMED)
    told = f": those that end together are of the ranks {named}" if found else ""
    yield f"{len(untold):,} kernels of collectives name no group{told}"
    if unknown := sum(queue not in known for queue in untold):
        yield (
            f"which ranks take part in {unknown:,} of them nobody can tell, for too few of the kind were recorded, or they end "
            "with none or with several: what ranks wait there, and pass on to others, is not told"
        )


def _labelled(rank: Rank, r: int, label: Mapping[_Queue, str]) -> Rank:
    """The rank with these groups in the keys of its collectives, which count anew in each."""
    if not label or all(one.told for one in rank.collectives):
        return rank
    counts: defaultdict[OfKind, int] = defaultdict(int)
    collectives = []
    for one in rank.collectives:
        if not one.told:
            base = one.key.step, label[r, one.queue], one.key.kind
            one = replace(one, key=MeetingKey(*base, counts[base]))
            counts[base] += 1
        collectives.append(one)
    return replace(rank, collectives=tuple(collectives))


def _regular(ranks: Sequence[Rank]) -> _Grouped:
    """The groups of queues, of those that do the same with as many ranks each."""
    first = ranks[0].origin  # taken off: a double cannot hold nanoseconds since 1970
    queues = [_queues(rank, rank.origin - first, steps) for rank, steps in zip(ranks, whole_steps(ranks), strict=True)]
    whole = _whole(ranks)
    tried = []
    for least, near in product((NEARLY_ALL, MOST), TOGETHER):
        found = _grouped(queues, near, least)
        if len(found.groups) == 1 and not found.doubtful:
            return found  # of all: however few collectives, nothing says otherwise
        sizes: defaultdict[Any, Counter[int]] = defaultdict(Counter)
        for group in found.groups:
            sizes[group.ends.does][len(group.queues)] += len(group.queues)
        usual = {does: of.most_common(1)[0][0] for does, of in sizes.items()}
        for group in found.groups:
            odd = whole and len(group.queues) != usual[group.ends.does]
            if odd or group.weak or len(group.ends.times) < SURELY:
                found.doubtful += group.queues
        kept = [group for group in found.groups if found.doubtful and group.queues[0] not in found.doubtful]
        tried.append(replace(found, groups=kept) if found.doubtful else found)
        if not found.doubtful and all(len(group.queues) > 1 for group in found.groups):
            return found
    return min(tried, key=lambda one: len(one.doubtful) + sum(len(group.queues) == 1 for group in one.groups))


def _grouped(queues: Sequence[dict[int, _Ends]], near: int, least: float) -> _Grouped:
    """The groups of queues that end within so many ns, of those that lost nothing at `least` so much."""
    found = _Grouped()
    pending = [r for r, own in enumerate(queues) if own]
    while pending:
        best = (0, 0.0, pending[0])
        for r in pending:
            if found.groups and best[0] < STRONG:
                best = max(best, (*_offset(found.groups, queues[r], near), r), key=lambda one: one[0])
        evidence, offset, r = best
        pending.remove(r)
        for queue, ends in queues[r].items():
            found.add(r, queue, ends.later(offset), near, evidence >= SURELY, least)
    return found


def _queues(rank: Rank, origin: int, steps: frozenset[int]) -> dict[int, _Ends]:
    """When the collectives of a rank end that name no group, by queue; of these steps."""
    found: defaultdict[int, defaultdict[Alike, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in rank.collectives:
        if not one.told and one.key.step in steps:
            found[one.queue][_alike(one)].append(origin + one.end)
    return {
        queue: _Ends(
            tuple((kind, len(times)) for kind, times in sorted(kinds.items())),
            np.concatenate([np.sort(np.array(times)) for _, times in sorted(kinds.items())]),
            steps,
        )
        for queue, kinds in sorted(found.items())
    }


def _alike(one: Collective) -> Alike:
    uneven = any(word in one.key.kind for word in UNEVEN)
    return one.key.step, one.key.kind, -1 if uneven else one.elements, one.group_size


def _offset(groups: Sequence[_Group], own: dict[int, _Ends], near: int) -> tuple[int, float]:
    """What to add to the clock of a rank, and how many collectives of its queues then end with one of the groups, of each queue
    at most `STRONG`: that of which these are most, the least of several."""
    fits = [
        [
            (_apart(*both), MOST * _most(*both))
            for group in groups
            if _comparable(*(both := _in_common(group.ends, ends)))
        ]
        for ends in own.values()
    ]
    candidates = {at for row in fits for times, least in row for at in _agreed(times, least, near)}

    def explained(at: float) -> int:
        found = [[(_within(times, at, near), least) for times, least in row] for row in fits]
        return sum(min(STRONG, max((n for n, least in row if n >= least), default=0)) for row in found)

    return min(((explained(at), at) for at in candidates), key=lambda one: (-one[0], abs(one[1])), default=(0, 0.0))


def _agreed(times: NDArray[np.float64], least: float, near: int) -> Iterator[float]:
    """The offset on which most of these differences agree, where so many do; of several the least."""
    votes = np.searchsorted(times, times + 2 * near, "right") - np.arange(len(times))
    if len(times) and votes.max() >= least:
        yield min((float(np.median(times[n : n + votes[n]])) for n in np.flatnonzero(votes == votes.max())), key=abs)


def _share(one: _Ends, other: _Ends, near: int) -> float:
    """The part of the collectives of two queues that end within so many ns."""
    one, other = _in_common(one, other)
    return _within(_apart(one, other), 0.0, near) / _most(one, other) if _comparable(one, other) else 0.0


def _in_common(one: _Ends, other: _Ends) -> tuple[_Ends, _Ends]:
    """Both in the steps that both ranks have whole."""
    steps = one.steps & other.steps
    return one.of(steps), other.of(steps)


def _lost(one: _Ends, other: _Ends) -> bool:
    """Whether one of them lacks what the other has, in the steps that both have."""
    one, other = _in_common(one, other)
    return one.does != other.does


def _most(one: _Ends, other: _Ends) -> int:
    return max(len(one.times), len(other.times))


def _comparable(one: _Ends, other: _Ends) -> bool:
    """Whether two queues have nearly as many collectives: else most of them cannot end together."""
    return _most(one, other) > 0 and min(len(one.times), len(other.times)) >= MOST * _most(one, other)


def _within(times: NDArray[np.float64], at: float, near: int) -> int:
    return int(np.searchsorted(times, at + near, "right") - np.searchsorted(times, at - near))


def _apart(one: _Ends, other: _Ends) -> NDArray[np.float64]:
    """By how much the ends of two queues differ, sorted: those of collectives that are alike, in their order where there are as
    many of both, else each and each."""
    if one.does == other.does:
        return np.sort(one.times - other.times)
    found, here, there = [np.zeros(0)], one.kinds(), other.kinds()
    for kind in here.keys() & there.keys():
        if len(here[kind]) == len(there[kind]):
            found.append(here[kind] - there[kind])
        else:
            thin = max(1, len(here[kind]) * len(there[kind]) // PAIRS)
            found.append(np.subtract.outer(here[kind], there[kind][::thin]).ravel())
    return np.sort(np.concatenate(found))
