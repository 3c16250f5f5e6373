"""Whose delay a wait in a collective is, each delay once.

What a rank waits in a collective holds it up only as far as its device does nothing else meanwhile: of several that overlap
with compute, as the all-reduces of buckets do, each shows the same delay again. And a rank that waited in one group comes late
to the next one by that: there the others wait for the rank that it had waited for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class LateBy(StrEnum):
    """What a rank that comes last to a collective spent its extra time on, as its value in words."""

    SYNCS = "waits in syncs"
    LAUNCHES = "launches"
    HOST = "host work"
    DEVICE = "device work"
    START = "a late start"  # its recording begins later
    OTHERS = "a wait for another rank"  # in the collective of another group


class Arrival(NamedTuple):
    """A rank's part in a collective: its number, when it came, how long its kernel lasted and how much of that it computed."""

    rank: int
    at: float
    lasted: float
    busy: float


@dataclass(frozen=True, slots=True)
class Owed:
    """How long other ranks were held up by one, ns in sum over these; `rank` is its number."""

    rank: int
    time: float
    cause: LateBy


class Waits:
    """What each rank was held up so far; collectives are told in the order in which their last ranks come."""

    def __init__(self) -> None:
        self._held_up: defaultdict[int, float] = defaultdict(float)
        self._by: dict[int, tuple[int, LateBy]] = {}  # whose delay that was at last
        self._before: dict[tuple[int, ...], dict[int, float]] = {}  # what each was held up when these met at last

    def passed_on(self, arrivals: Sequence[Arrival]) -> bool:
        """Whether the last one comes late mostly by what it waited for another rank since these met."""
        last = max(arrivals, key=lambda one: one.at)
        waits = sum(exposed(last.at, one) for one in arrivals)
        return 2 * sum(self._earlier(arrivals, last, one) for one in arrivals) > waits

    def owed(self, arrivals: Sequence[Arrival], cause: LateBy) -> tuple[Owed, ...]:
        """By whom the others are held up in this collective, the last of which was late by `cause`."""
        last = max(arrivals, key=lambda one: one.at)
        own, source = (last.rank, cause), self._by.get(last.rank, (last.rank, cause))
        found: defaultdict[tuple[int, LateBy], float] = defaultdict(float)
        for one in arrivals:
            earlier = self._earlier(arrivals, last, one)
            found[own] += exposed(last.at, one) - earlier
            if source[0] != one.rank:  # what it waits because it had made the last one wait is its own delay
                found[source] += earlier
        for one in arrivals:
            if wait := exposed(last.at, one):
                self._held_up[one.rank] += wait
                self._by[one.rank] = source if cause is LateBy.OTHERS else own
        self._before[_who(arrivals)] = {one.rank: self._held_up[one.rank] for one in arrivals}
        return tuple(Owed(rank, time, why) for (rank, why), time in found.items() if time)

    def _earlier(self, arrivals: Sequence[Arrival], last: Arrival, one: Arrival) -> float:
        """How much of what `one` waits for the last one here is what that one was held up more since these met."""
        before = self._before.get(_who(arrivals), {})
        since = [self._held_up[each.rank] - before.get(each.rank, 0.0) for each in (last, one)]
        return min(exposed(last.at, one), max(0.0, since[0] - since[1]))


def _who(arrivals: Sequence[Arrival]) -> tuple[int, ...]:
    return tuple(one.rank for one in arrivals)


def exposed(end: float, one: Arrival) -> float:
    """By how much a wait from its arrival to `end` holds a rank up: it computes for the rest of its kernel's time."""
    return max(0.0, min(end - one.at, one.lasted - one.busy))
