"""Which collectives of the ranks of a job are one.

A collective ends at one moment everywhere. So a rank's clock is set to where most of its ends fall onto those of the others,
and each of its collectives is matched with the one of the same step, group and kind that ends with it, in order, as a diff
matches lines: an event that a recording lost leaves a gap, and does not move what follows. What ends with none stays alone.
Which ranks are a group where no recording says that, `groups` has found before.
"""

from __future__ import annotations

import statistics
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from syncscope.analysis.meeting_key import MeetingKey, OfKind
from syncscope.analysis.rank import Rank, common_steps

UNLIKE = 10_000_000  # ns: clocks of machines that ask one server are nearer
NEAR = 1_000_000  # ns between the ends of one collective: clocks drift, and a rank is done a little before another
SURE = 50_000  # ns between them, where there are as many on both sides, or nothing says that they are of one group
VOTE = 100_000  # ns that offsets of one clock are apart
RATHER = 0.8  # of the most votes, which an offset near to none needs to be taken
# what a match of two sizes is worth: ranks may send different amounts, but more often they send the same
OTHER_SIZE = 0.5
PAIRS = 1 << 20  # of ends that are compared for an offset


@dataclass(slots=True)
class _End:
    """The end of a collective, ns of the first rank's clock, its elements, and who ends there, as rank and number; what is
    further from it than `near` is another one."""

    at: float
    size: int
    who: list[tuple[int, int]] = field(default_factory=list)
    near: int = NEAR


class _Pair(NamedTuple):
    """Two ends that are one, by position, and the pair before."""

    there: int
    here: int
    before: _Pair | None


@dataclass(frozen=True, slots=True)
class Matched:
    """What to add to each rank's clock, ns, and by a key of each collective of the job who takes part, as rank and number.

    Those `alone` end with none of another rank, `partial` are those that fewer ranks have
    than is usual for their group and kind: who came last to them is not known.
    """

    offsets: list[int]
    who: dict[MeetingKey, list[tuple[int, int]]]
    alone: frozenset[MeetingKey]
    partial: frozenset[MeetingKey]

    @property
    def uncoupled(self) -> list[int]:
        """The positions of the ranks of which no collective is one of another rank's, where there are collectives: nobody knows
        who waits for them, nor for whom they wait."""
        met = {r for who in self.who.values() if len(who) > 1 for r, _ in who}
        return [r for r in range(len(self.offsets)) if self.who and len(self.offsets) > 1 and r not in met]


def matched(ranks: Sequence[Rank]) -> Matched:
    """Match the collectives of these ranks."""
    base = ranks[0].origin  # taken off first: a double cannot hold nanoseconds since 1970
    ends = [_ends(r, rank, base) for r, rank in enumerate(ranks)]
    found: dict[OfKind, list[_End]] = {}
    offsets, pending = [0] * len(ranks), list(range(len(ranks)))
    while pending:
        r = next((r for r in pending if not found.keys().isdisjoint(ends[r])), pending[0])
        pending.remove(r)
        offsets[r] = _joined(found, ends[r])
    who = {
        MeetingKey(*kind, ordinal): sorted(end.who)
        for kind, of_kind in found.items()
        for ordinal, end in enumerate(sorted(of_kind, key=lambda end: end.at))
    }
    common = common_steps(ranks)
    known = {(key.group, key.kind) for key, members in who.items() if len(members) > 1 and key.step in common}
    counts = defaultdict[tuple[str, str], list[int]](list)
    for key, members in who.items():
        group = key.group, key.kind
        # by the steps that all have, if it is in them
        if len(members) > 1 and (key.step in common or group not in known):
            counts[group].append(len(members))
    usual = {group: statistics.median_low(many) for group, many in counts.items()}
    return Matched(
        offsets,
        who,
        alone=frozenset(key for key, members in who.items() if len(members) == 1 < len(ranks)),
        partial=frozenset(key for key, members in who.items() if 1 < len(members) < usual[(key.group, key.kind)]),
    )


def _ends(r: int, rank: Rank, base: int) -> dict[OfKind, list[_End]]:
    """The ends of a rank's collectives, by step, group and kind, each in their order."""
    found = defaultdict[OfKind, list[_End]](list)
    for number, one in enumerate(rank.collectives):
        end = _End(rank.origin - base + one.end, one.elements, [(r, number)], NEAR if one.told else SURE)
        found[one.key.of_kind].append(end)
    for ends in found.values():
        ends.sort(key=lambda end: end.at)
    return found


def _joined(found: dict[OfKind, list[_End]], own: dict[OfKind, list[_End]]) -> int:
    """Add what a rank has to what is `found`, and return what was added to its clock."""
    offset = _vote(found, own)
    for _ in range(2):  # by the vote, and again by what it matched
        pairs = {kind: _paired(found[kind], ends, offset) for kind, ends in own.items() if kind in found}
        apart = [found[kind][i].at - own[kind][j].at for kind, of_kind in pairs.items() for i, j in of_kind]
        offset = int(statistics.median(apart)) if apart else offset
    for kind, ends in own.items():
        of_kind = found.setdefault(kind, [])
        taken = {j: i for i, j in pairs.get(kind, ())}
        known = list(of_kind)
        for j, end in enumerate(ends):
            if j in taken:
                known[taken[j]].who += end.who
            else:
                of_kind.append(_End(end.at + offset, end.size, end.who, end.near))
        of_kind.sort(key=lambda end: end.at)
    return offset


def _vote(found: dict[OfKind, list[_End]], own: dict[OfKind, list[_End]]) -> int:
    """The offset at which most ends of a rank fall onto those that are `found`, rather one near to none: machines set their
    clocks, and in a loop whose passes take the same time another pass fits nearly as well."""
    votes: list[np.ndarray[tuple[int], np.dtype[np.float64]]] = []
    for kind in found.keys() & own.keys():
        step = -(-len(found[kind]) * len(own[kind]) // PAIRS)
        there, here = found[kind], own[kind][:: max(1, step)]
        apart = np.subtract.outer([end.at for end in there], [end.at for end in here])
        same = np.equal.outer([end.size for end in there], [end.size for end in here])
        votes.append(apart[same] if same.any() else apart.ravel())
    if not votes:
        return 0
    every = np.sort(np.concatenate(votes))
    count = np.searchsorted(every, every + VOTE, "right") - np.arange(len(every))
    near = np.abs(every) <= UNLIKE
    most = int(count.max())
    if near.any() and count[near].max() >= RATHER * most:
        most, count = int(count[near].max()), np.where(near, count, 0)
    chosen = min(np.flatnonzero(count == most).tolist(), key=lambda n: abs(every[n]))
    return int(np.median(every[chosen : chosen + most]))


def _paired(there: Sequence[_End], here: Sequence[_End], offset: int) -> list[tuple[int, int]]:
    """Which end of a rank is which of those that are found, as positions: as many as can be, and as near as they can be."""
    at = [end.at + offset for end in here]
    if len(there) == len(here) and all(
        abs(one.at - end) <= SURE and one.size == other.size for one, end, other in zip(there, at, here, strict=True)
    ):
        return [(n, n) for n in range(len(here))]
    # by how many of `here` were offered: what is matched, and how
    best: list[tuple[float, _Pair | None]] = [(0.0, None)]
    for i, end in enumerate(there):
        first, last = bisect_left(at, end.at - end.near), bisect_right(at, end.at + end.near)
        best += [best[-1]] * (last + 1 - len(best))
        unmatched = best[first]
        for j in range(first, last):
            before, unmatched = unmatched, best[j + 1]
            worth = (1 - abs(end.at - at[j]) / end.near) * (1 if end.size == here[j].size else OTHER_SIZE)
            way = (before[0] + worth, _Pair(i, j, before[1]))
            best[j + 1] = max(best[j + 1], best[j], way, key=lambda way: way[0])
    pairs: list[tuple[int, int]] = []
    last_pair = best[-1][1]
    while last_pair is not None:
        pairs.append((last_pair.there, last_pair.here))
        last_pair = last_pair.before
    return pairs[::-1]
