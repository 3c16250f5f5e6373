"""All ranks of a job together: who waits for whom, and what a line costs the job.

A collective ends for all when the last rank has come and the data is over the wire, so a fast rank waits for a slow one,
and the price of a read on a rank that waits anyway is nothing. The ranks are replayed side by side and meet at every
collective; clocks are aligned at the ends of the collectives, which are the same moment everywhere.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.graph import NEVER
from syncscope.analysis.groups import with_groups
from syncscope.analysis.late_begins import in_steps
from syncscope.analysis.late_causes import LateCauses
from syncscope.analysis.lines_between import AtLine
from syncscope.analysis.matched import UNLIKE, matched
from syncscope.analysis.meeting_key import MeetingKey
from syncscope.analysis.owed import Arrival, LateBy, Owed, Waits, exposed
from syncscope.analysis.rank import Rank, common_steps
from syncscope.analysis.rank_times import RankTimes
from syncscope.analysis.replay import Meeting, Times, walk
from syncscope.model.durations import about_ms

MOST, LEAST = 5, 0.1  # operators that are named, and the part of what a host does longer that each of them has
NAMED = 4  # ranks in a note
SPENT_AT = {LateBy.DEVICE: "device", **dict.fromkeys((LateBy.HOST, LateBy.SYNCS, LateBy.LAUNCHES), "lines")}
"""Where a rank that comes last by a cause spent its time: what of a `Collective` says that by line."""
TOGETHER = 1_000  # ns: a profiler's clock has whole microseconds


@dataclass(frozen=True, slots=True)
class Meet:
    """One collective of the job, ns of the job's clock: who came last, how long after the first, and why.

    `imposed` is the sum of what the others waited for it, as measured. `cause` is what the last one spent most of its extra
    time on. `owed` is by whom the others were held up, each delay once.
    """

    key: MeetingKey
    late: int  # number of the rank
    skew: float
    imposed: float
    cause: LateBy
    transfer: float
    owed: tuple[Owed, ...] = ()

    @property
    def together(self) -> bool:
        """Whether all came at one moment, as far as clocks can tell."""
        return self.skew < TOGETHER

    @property
    def step(self) -> int:
        """The index of its step, -1 outside of any."""
        return self.key.step


def owed_by(meets: Iterable[Meet]) -> dict[int, Counter[LateBy]]:
    """How long each rank held others up in these collectives, ns in sum over these, by what made it late."""
    found: dict[int, Counter[LateBy]] = defaultdict(Counter)
    for owed in (owed for meet in meets for owed in meet.owed if not meet.together):
        found[owed.rank][owed.cause] += round(owed.time)
    return found


@dataclass(frozen=True, slots=True)
class LongerIn:
    """What took a rank longer than the middle one of the others before collectives to which it came last, ns of the whole
    recording: an operator or annotation of the host, "" outside of all; or a `line`, or what comes `before` it; of a device
    without lines a kernel. `name` is any of them in words."""

    name: str
    own: float
    others: float
    line: str = ""
    before: bool = False

    @property
    def short(self) -> str:
        """Its name, of a kernel without arguments, of what comes before a line that line."""
        return self.line or re.split(r"[(<]", self.name, maxsplit=1)[0].strip() or self.name


def _longer(name: str | AtLine, own: float, others: float) -> LongerIn:
    if isinstance(name, AtLine):
        return LongerIn(str(name), own, others, name.place, name.before)
    return LongerIn(name, own, others)


@dataclass(frozen=True, slots=True)
class RankLine:
    """A rank's part in the job. Times are ns: a step's are `blocked` and `symptom`, what its reads waited because other ranks
    were late, and `on_time`, by how much that of the others would be shorter if they had not waited for it: None where that was
    not replayed. Of the whole recording are how often it was `late`, and by how much it held others up (`imposed`)."""

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
    on_time: float | None = None
    operators: tuple[LongerIn, ...] = ()  # what its host does longer where it is late by host work, most first
    lines: tuple[LongerIn, ...] = ()  # the lines where it takes longer whatever makes it late: its host, or its device
    times: RankTimes | None = None  # where its step goes, of those that all ranks count


class JointReplay:
    """Ranks with their collectives matched and their clocks aligned."""

    def __init__(self, ranks: Sequence[Rank]) -> None:
        ranks, found = with_groups(in_steps(ranks))
        self.ranks = ranks
        self.steps = tuple(sorted({step.index for rank in ranks for step in rank.graph.steps}))  # of any rank
        self.notes: tuple[str, ...] = ()
        self.matched = matched(ranks)
        self._who, self.offsets = self.matched.who, self.matched.offsets
        self._key = [[one.key for one in rank.collectives] for rank in ranks]
        for key, who in self._who.items():
            for r, c in who:
                self._key[r][c] = key
        first = min(rank.origin + offset for rank, offset in zip(ranks, self.offsets, strict=True))
        self.begins = [float(rank.origin + offset - first) for rank, offset in zip(ranks, self.offsets, strict=True)]
        self._transfer = {
            key: min(ranks[r].collectives[c].end - ranks[r].collectives[c].start for r, c in who)
            for key, who in self._who.items()
        }
        said = [*found, *self._unmatched()]
        if apart := self._apart():
            said.append(apart)
        said += [*self._uneven(), *self._behind()]
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

    def _ranks(self, key: MeetingKey) -> set[int]:
        return {r for r, _ in self._who[key]}

    def untold(self) -> float:
        """How long the kernels lasted in which nobody can tell who waited, in the steps that all ranks have, ns in all."""
        common = common_steps(self.ranks)
        ends = [
            self.ranks[r].collectives[c]
            for key in self.matched.alone | self.matched.partial
            if key.step in common
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
            return ["no step is marked: all figures are of the whole recording"]
        if not common_steps(self.ranks):
            return ["the ranks have no step in common: figures of a step are of all that was recorded"]
        lacking = [rank for rank in self.ranks if len(rank.graph.steps) < len(self.steps)]
        if not lacking:
            return []
        named = [f"rank {rank.number} has {len(rank.graph.steps)}" for rank in lacking[:NAMED]]
        if len(lacking) > NAMED:
            named.append(f"{len(lacking) - NAMED} more have fewer, too")
        return [f"of {len(self.steps)} steps {', '.join(named)}: figures of a step are of those that all ranks have"]

    def _behind(self) -> list[str]:
        """Whose device still had steps to do when its recording began."""
        behind = sorted((rank for rank in self.ranks if rank.graph.begin), key=lambda rank: -rank.graph.begin)
        if not behind:
            return []
        whose = "device of rank" if len(behind) == 1 else "devices of ranks"
        named = ", ".join(f"{rank.number} for {about_ms(rank.graph.begin)}" for rank in behind[:NAMED])
        more = f" and {len(behind) - NAMED} more" * (len(behind) > NAMED)
        return [
            f"the {whose} {named}{more} did what was enqueued before the recording: the first step begins after that"
        ]

    def begin_together(self, first: int) -> None:
        """Has ranks that never meet end the job's step at this place of `steps`, or begin where there is none, at one moment: a
        step of the job is then one of its slowest rank, whenever that came to it."""
        came = []
        for rank in self.ranks:
            own = [step.index for step in rank.graph.steps]
            at = own.index(self.steps[first]) if first >= 0 and self.steps[first] in own else -1
            came.append(float(rank.graph.ends[at] if at >= 0 else rank.graph.begin))
        self.begins = [max(came) - one for one in came]

    def replay(self, freed: Sequence[NDArray[np.bool_]]) -> tuple[Times, Times]:
        """The job's end in each scenario, and the ends of its `steps`; `freed[r][s, i]` takes read i of rank r out."""
        return self._last(self._courses(freed, self._released))

    def unwaited(self, r: int, for_it: Collection[MeetingKey]) -> tuple[Times, Times]:
        """The same of all ranks but this one, in two scenarios: as it was, and where none of them waits for it but in the
        collectives of the keys `for_it`."""

        def released(key: MeetingKey, there: list[tuple[int, Meeting]]) -> list[tuple[int, Times]]:
            ends = self._released(key, there)
            others = [pair for pair in there if pair[0] != r]
            if not others or len(others) == len(there) or key in for_it:
                return ends
            without = dict(self._released(key, others))
            return [(q, np.array([end[0], without[q][1] if q in without else end[1]])) for q, end in ends]

        nothing = [np.zeros((2, len(rank.graph.reads)), bool) for rank in self.ranks]
        over = self._courses(nothing, released)
        del over[r]
        return self._last(over)

    def _courses(
        self,
        freed: Sequence[NDArray[np.bool_]],
        released: Callable[[MeetingKey, list[tuple[int, Meeting]]], list[tuple[int, Times]]],
    ) -> dict[int, tuple[Times, Times]]:
        """The end of each rank in each scenario, and those of its steps; `released` says when a collective of a key ends."""
        runs = [walk(rank.graph, out, begin) for rank, out, begin in zip(self.ranks, freed, self.begins, strict=True)]
        ready: list[tuple[int, Times | None]] = [(r, None) for r in range(len(runs))]
        here: dict[MeetingKey, list[tuple[int, Meeting]]] = defaultdict(list)
        over: dict[int, tuple[Times, Times]] = {}
        while ready or here:
            if not ready:  # ranks that come in different orders: those who are there go on
                key = min(here, key=lambda k: float(here[k][0][1].arrival[0]))
                ready += released(key, here.pop(key))
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
                ready += released(key, here.pop(key))
        return over

    def _last(self, over: Mapping[int, tuple[Times, Times]]) -> tuple[Times, Times]:
        """When the last of these ranks ended, and each of the job's `steps` on the last of them."""
        last: Times = np.stack([end for end, _ in over.values()]).max(axis=0)
        ends = np.full((len(last), len(self.steps)), NEVER)
        for r, (_, own) in over.items():
            at = np.searchsorted(self.steps, [step.index for step in self.ranks[r].graph.steps])
            ends[:, at] = np.maximum(ends[:, at], own)
        return last, ends

    def _released(self, key: MeetingKey, there: list[tuple[int, Meeting]]) -> list[tuple[int, Times]]:
        end: Times = np.stack([meeting.arrival for _, meeting in there]).max(axis=0) + self._transfer[key]
        return [(r, end) for r, _ in there]

    @property
    def measured(self) -> float:
        """When the last rank had ended in the recording, ns of the job's clock."""
        return max(begin + rank.graph.end for begin, rank in zip(self.begins, self.ranks, strict=True))

    def meets(self) -> tuple[Meet, ...]:
        """The collectives of more than one rank in the order of their ends."""
        come = []
        for key, who in self._who.items():
            if len(who) > 1 and key not in self.matched.partial:
                arrivals = [self._arrival(r, c) for r, c in who]
                come.append((max(one.at for one in arrivals), key, arrivals))
        found, waits, causes = [], Waits(), LateCauses(self.ranks, self.begins)
        for latest, key, arrivals in sorted(come, key=lambda one: one[0]):
            last = max(range(len(arrivals)), key=lambda n: arrivals[n].at)
            own = causes.of(self._who[key], last)
            cause = LateBy.OTHERS if waits.passed_on(arrivals) else own
            found.append(
                Meet(
                    key=key,
                    late=arrivals[last].rank,
                    skew=latest - min(one.at for one in arrivals),
                    imposed=sum(min(latest - one.at, one.lasted) for one in arrivals),
                    cause=cause,
                    transfer=self._transfer[key],
                    owed=waits.owed(arrivals, cause),
                )
            )
        return tuple(found)

    def _arrival(self, r: int, c: int) -> Arrival:
        one = self.ranks[r].collectives[c]
        return Arrival(self.ranks[r].number, self.begins[r] + one.start, one.end - one.start, one.busy)

    def rows(
        self, meets: tuple[Meet, ...], alone: Sequence[float | None], on_time: Mapping[int, float]
    ) -> tuple[RankLine, ...]:
        """What each rank did to the others, and what they did to it; `on_time` is by position."""
        late: dict[int, list[Meet]] = defaultdict(list)
        for meet in meets:
            if not meet.together:
                late[meet.late].append(meet)
        owed, common = owed_by(meets), common_steps(self.ranks)
        arrivals = {
            key: max(self.begins[r] + self.ranks[r].collectives[c].start for r, c in who)
            for key, who in self._who.items()
        }
        found = []
        for r, rank in enumerate(self.ranks):
            own = late[rank.number]
            reads, steps = rank.counted()
            causes = owed.get(rank.number) or Counter(meet.cause for meet in own)
            found.append(
                RankLine(
                    number=rank.number,
                    name=rank.name,
                    length=rank.graph.end,
                    blocked=sum(rank.graph.reads[n].held for n in reads) / steps,
                    symptom=self._symptom(r, arrivals, reads) / steps,
                    late=len(own),
                    imposed=sum(owed.get(rank.number, {}).values()),
                    cause=causes.most_common(1)[0][0] if causes else None,
                    saved_alone=alone[r],
                    offset=float(self.offsets[r]),
                    on_time=on_time.get(r),
                    operators=self._longer_in(r, [(meet, "work") for meet in own if meet.cause is LateBy.HOST]),
                    lines=self._longer_in(r, [(meet, SPENT_AT[meet.cause]) for meet in own if meet.cause in SPENT_AT]),
                    times=rank.times_of(common),
                )
            )
        return tuple(found)

    def _longer_in(self, r: int, meets: Sequence[tuple[Meet, str]]) -> tuple[LongerIn, ...]:
        """What a rank did longer before these collectives than the middle one of the others, by what each keeps of that."""
        own, others = Counter[str | AtLine](), Counter[str | AtLine]()
        for meet, kept in meets:
            works = {at: dict(getattr(self.ranks[at].collectives[c], kept)) for at, c in self._who[meet.key]}
            mine = works.pop(r)
            for name, time in mine.items():
                own[name] += int(time)
                others[name] += int(statistics.median(work.get(name, 0.0) for work in works.values()))
        longer = own - others
        found = [(name, more) for name, more in longer.most_common(MOST) if more >= LEAST * longer.total()]
        return tuple(_longer(name, float(own[name]), float(others[name])) for name, _ in found)

    def _symptom(self, r: int, arrivals: dict[MeetingKey, float], reads: Collection[int]) -> float:
        """How long these reads of a rank were blocked while one of its collectives waited for another rank."""
        rank, begin = self.ranks[r], self.begins[r]
        waits = [
            (arrivals[key] - begin - exposed(arrivals[key], self._arrival(r, n)), arrivals[key] - begin)
            for n, key in enumerate(self._key[r])
        ]
        zero = rank.graph.origin
        total = 0.0
        for read in (rank.graph.reads[n] for n in reads):
            since, until = read.start - zero, read.start - zero + read.blocked
            total += sum(max(0.0, min(until, end) - max(since, start)) for start, end in waits)
        return total
