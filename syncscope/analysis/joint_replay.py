"""All ranks of a job together: who waits for whom, and what a line costs the job.

A collective ends for all when the last rank has come and the data is over the wire, so a fast rank waits for a slow one,
and the price of a read on a rank that waits anyway is nothing. The ranks are replayed side by side and meet at every
collective; clocks are aligned at the ends of the collectives, which are the same moment everywhere.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.graph import NEVER
from syncscope.analysis.matched import UNLIKE, matched
from syncscope.analysis.rank import Rank, common_steps
from syncscope.analysis.replay import Meeting, Times, walk
from syncscope.model.durations import about_ms

MOST, LEAST = 5, 0.1  # operators that are named, and the part of what a host does longer that each of them has
NAMED = 4  # ranks in a note
TOGETHER = 1_000  # ns: a profiler's clock has whole microseconds


class LateBy(StrEnum):
    """What a rank that comes last to a collective spent its extra time on, as its value in words."""

    SYNCS = "waits in syncs"
    LAUNCHES = "launches"
    HOST = "host work"
    DEVICE = "device work"
    START = "a late start"  # its recording begins later


@dataclass(frozen=True, slots=True)
class Meet:
    """One collective of the job, ns of the job's clock: who came last, how long after the first, and why.

    `imposed` is the sum of what the others waited for it, `behind` how long it came after the one before it. `cause` is what
    the last one spent most of its extra time on.
    """

    key: str
    late: int  # number of the rank
    skew: float
    imposed: float
    cause: LateBy
    transfer: float
    behind: float = 0.0

    @property
    def together(self) -> bool:
        """Whether all came at one moment, as far as clocks can tell."""
        return self.skew < TOGETHER

    @property
    def step(self) -> int:
        """The index of its step, -1 outside of any."""
        return int(self.key.partition("/")[0])


@dataclass(frozen=True, slots=True)
class LongerIn:
    """An operator or annotation in which the host of a rank was longer than the middle one of the others, before collectives to
    which it came last by host work; ns of the whole recording. "" is what lies outside of all."""

    name: str
    own: float
    others: float


@dataclass(frozen=True, slots=True)
class RankLine:
    """A rank's part in the job. Times are ns: a step's are `blocked` and `symptom`, what its reads waited because other ranks
    were late, and `on_time`, by how much the job's would be shorter if it had come to collectives with the one before it. Of
    the whole recording are how often it was `late`, and what others waited for it then (`imposed`)."""

    number: int
    name: str
    length: float
    blocked: float
    symptom: float
    late: int
    imposed: float
    cause: LateBy | None  # None where it is never late
    saved_alone: float | None  # what the job gains if only this rank made no read
    offset: float  # of its clock
    on_time: float = 0.0
    operators: tuple[LongerIn, ...] = ()  # what its host does longer, most first


class JointReplay:
    """Ranks with their collectives matched and their clocks aligned."""

    def __init__(self, ranks: Sequence[Rank]) -> None:
        self.ranks = ranks
        self.steps = tuple(sorted({step.index for rank in ranks for step in rank.graph.steps}))  # of any rank
        self.notes: tuple[str, ...] = ()
        self.matched = matched(ranks)
        self._who, self.offsets = self.matched.who, self.matched.offsets
        self._key = [[""] * len(rank.collectives) for rank in ranks]
        for key, who in self._who.items():
            for r, c in who:
                self._key[r][c] = key
        first = min(rank.origin + offset for rank, offset in zip(ranks, self.offsets, strict=True))
        self.begins = [float(rank.origin + offset - first) for rank, offset in zip(ranks, self.offsets, strict=True)]
        self._transfer = {
            key: min(ranks[r].collectives[c].end - ranks[r].collectives[c].start for r, c in who)
            for key, who in self._who.items()
        }
        said = self._unmatched()
        if apart := self._apart():
            said.append(apart)
        world = max((rank.world for rank in ranks), default=0)
        if world > len(ranks):
            are = "is" if len(ranks) == 1 else "are"
            said.append(f"{len(ranks)} of {world:,} ranks {are} here: what the others did is not seen")
        said += self._uneven()
        if not self._who:
            said.append("no collective was found: the ranks are taken as independent")
        self.notes = tuple(said)

    def _unmatched(self) -> list[str]:
        """Of how many collectives nobody can tell who came last, and why."""
        said = []
        if alone := len(self.matched.alone):
            have = "kernels of collectives have" if alone > 1 else "kernel of a collective has"
            said.append(
                f"{alone:,} {have} no counterpart on another rank that ends with it: who waits there is not told"
            )
        if partial := self.matched.partial:
            lacks = Counter(r for key in partial for r in range(len(self.ranks)) if r not in self._ranks(key))
            named = ", ".join(str(self.ranks[r].number) for r, _ in lacks.most_common(NAMED))
            lack = f"{len(partial):,} collectives lack" if len(partial) > 1 else "one collective lacks"
            said.append(
                f"{lack} the kernel of a rank ({named}), which was not recorded: who came last there is not told"
            )
        return said

    def _ranks(self, key: str) -> set[int]:
        return {r for r, _ in self._who[key]}

    def untold(self) -> float:
        """How long the kernels lasted in which nobody can tell who waited, in the steps that all ranks have, ns in all."""
        common = common_steps(self.ranks)
        ends = [
            self.ranks[r].collectives[c]
            for key in self.matched.alone | self.matched.partial
            if int(key.partition("/")[0]) in common
            for r, c in self._who[key]
        ]
        return sum(one.end - one.start for one in ends)

    def _apart(self) -> str:
        """Whose clock is furthest from that of the first rank, where that is more than clocks that are kept alike differ by."""
        furthest = max(range(len(self.ranks)), key=lambda r: abs(self.offsets[r]))
        offset = self.offsets[furthest]
        if abs(offset) < UNLIKE:
            return ""
        one, first = self.ranks[furthest].number, self.ranks[0].number
        where = f"{about_ms(abs(offset))} {'behind' if offset > 0 else 'ahead of'}"
        return f"the clock of rank {one} is {where} that of rank {first}; all are set by the ends of common collectives"

    def _uneven(self) -> list[str]:
        """Which ranks lack steps that others have."""
        if not self.steps:
            return []
        if not common_steps(self.ranks):
            return ["the ranks have no step in common: figures of a step are of all that was recorded"]
        lacking = [rank for rank in self.ranks if len(rank.graph.steps) < len(self.steps)]
        if not lacking:
            return []
        named = [f"rank {rank.number} has {len(rank.graph.steps)}" for rank in lacking[:NAMED]]
        if len(lacking) > NAMED:
            named.append(f"{len(lacking) - NAMED} more have fewer, too")
        return [f"of {len(self.steps)} steps {', '.join(named)}: figures of a step are of those that all ranks have"]

    def replay(self, freed: Sequence[NDArray[np.bool_]]) -> tuple[Times, Times]:
        """The job's end in each scenario, and the ends of its `steps`; `freed[r][s, i]` takes read i of rank r out."""
        runs = [walk(rank.graph, out, begin) for rank, out, begin in zip(self.ranks, freed, self.begins, strict=True)]
        ready: list[tuple[int, Times | None]] = [(r, None) for r in range(len(runs))]
        here: dict[str, list[tuple[int, Meeting]]] = defaultdict(list)
        over: dict[int, tuple[Times, Times]] = {}
        while ready or here:
            if not ready:  # ranks that come in different orders: those who are there go on
                key = min(here, key=lambda k: float(here[k][0][1].arrival[0]))
                ready += self._released(key, here.pop(key))
                continue
            r, end = ready.pop()
            try:
                meeting = runs[r].send(end)
            except StopIteration as stop:
                over[r] = stop.value
                continue
            key = self._key[r][meeting.collective]
            here[key].append((r, meeting))
            if len(here[key]) == len(self._who[key]):
                ready += self._released(key, here.pop(key))
        last: Times = np.stack([end for end, _ in over.values()]).max(axis=0)
        ends = np.full((len(last), len(self.steps)), NEVER)
        for r, (_, own) in over.items():
            at = np.searchsorted(self.steps, [step.index for step in self.ranks[r].graph.steps])
            ends[:, at] = np.maximum(ends[:, at], own)
        return last, ends

    def _released(self, key: str, there: list[tuple[int, Meeting]]) -> list[tuple[int, Times]]:
        end: Times = np.stack([meeting.arrival for _, meeting in there]).max(axis=0) + self._transfer[key]
        return [(r, end) for r, _ in there]

    @property
    def measured(self) -> float:
        """When the last rank had ended in the recording, ns of the job's clock."""
        return max(begin + rank.graph.end for begin, rank in zip(self.begins, self.ranks, strict=True))

    def meets(self) -> tuple[Meet, ...]:
        """The collectives of more than one rank in the order of their ends."""
        found = []
        for key, who in self._who.items():
            if len(who) < 2 or key in self.matched.partial:
                continue
            arrivals = [self.begins[r] + self.ranks[r].collectives[c].start for r, c in who]
            last = int(np.argmax(arrivals))
            lasted = [self.ranks[r].collectives[c].end - self.ranks[r].collectives[c].start for r, c in who]
            imposed = sum(min(arrivals[last] - a, most) for a, most in zip(arrivals, lasted, strict=True))
            late = self.ranks[who[last][0]].number
            skew, behind = arrivals[last] - min(arrivals), arrivals[last] - sorted(arrivals)[-2]
            meet = Meet(key, late, skew, imposed, self._cause(who, last), self._transfer[key], behind)
            found.append((arrivals[last], meet))
        return tuple(meet for _, meet in sorted(found, key=lambda pair: pair[0]))

    def _cause(self, who: list[tuple[int, int]], last: int) -> LateBy:
        """What the last rank spent more time on than the middle one, since the collective before."""
        spent = []
        for r, c in who:
            one = self.ranks[r].collectives[c]
            begun = self.begins[r] if c == 0 else 0.0
            spent.append([one.blocked, one.launching, one.hosting, one.queued, begun])  # as `LateBy` has them
        table = np.array(spent)
        extra = table[last] - np.median(np.delete(table, last, axis=0), axis=0)
        causes: list[LateBy] = list(LateBy)
        return causes[int(np.argmax(extra))]

    def rows(self, meets: tuple[Meet, ...], alone: Sequence[float | None]) -> tuple[RankLine, ...]:
        """What each rank did to the others, and what they did to it."""
        late: dict[int, list[Meet]] = defaultdict(list)
        for meet in meets:
            if not meet.together:
                late[meet.late].append(meet)
        shared = common_steps(self.ranks)
        arrivals = {
            key: max(self.begins[r] + self.ranks[r].collectives[c].start for r, c in who)
            for key, who in self._who.items()
        }
        found = []
        for r, rank in enumerate(self.ranks):
            own = late[rank.number]
            reads, steps = rank.counted()
            causes: Counter[LateBy] = Counter()
            for meet in own:
                causes[meet.cause] += int(meet.imposed)
            found.append(
                RankLine(
                    number=rank.number,
                    name=rank.name,
                    length=rank.graph.end,
                    blocked=sum(rank.graph.reads[n].held for n in reads) / steps,
                    symptom=self._symptom(r, arrivals, reads) / steps,
                    late=len(own),
                    imposed=sum(meet.imposed for meet in own),
                    cause=causes.most_common(1)[0][0] if causes else None,
                    saved_alone=alone[r],
                    offset=float(self.offsets[r]),
                    on_time=sum(m.behind for m in own if m.step in shared and m.cause is not LateBy.START)
                    / max(1, len(shared)),
                    operators=self._longer_in(r, [meet for meet in own if meet.cause is LateBy.HOST]),
                )
            )
        return tuple(found)

    def _longer_in(self, r: int, meets: Sequence[Meet]) -> tuple[LongerIn, ...]:
        """What a rank's host did longer before these collectives than the middle one of the others."""
        own, others = Counter[str](), Counter[str]()
        for meet in meets:
            works = {at: dict(self.ranks[at].collectives[c].work) for at, c in self._who[meet.key]}
            mine = works.pop(r)
            for name, time in mine.items():
                own[name] += int(time)
                others[name] += int(statistics.median(work.get(name, 0.0) for work in works.values()))
        longer = own - others
        found = [(name, more) for name, more in longer.most_common(MOST) if more >= LEAST * longer.total()]
        return tuple(LongerIn(name, float(own[name]), float(others[name])) for name, _ in found)

    def _symptom(self, r: int, arrivals: dict[str, float], reads: Collection[int]) -> float:
        """How long these reads of a rank were blocked while one of its collectives waited for another rank."""
        rank, begin = self.ranks[r], self.begins[r]
        waits = [
            (c.start, max(c.start, arrivals[key] - begin))
            for c, key in zip(rank.collectives, self._key[r], strict=True)
        ]
        zero = rank.graph.origin
        total = 0.0
        for read in (rank.graph.reads[n] for n in reads):
            since, until = read.start - zero, read.start - zero + read.blocked
            total += sum(max(0.0, min(until, end) - max(since, start)) for start, end in waits)
        return total
