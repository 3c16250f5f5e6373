"""All ranks of a job together: who waits for whom, and what a line costs the job.

A collective ends for all when the last rank has come and the data is over the wire, so a fast rank waits for a slow one,
and the price of a read on a rank that waits anyway is nothing. The ranks are replayed side by side and meet at every
collective; clocks are aligned at the ends of the collectives, which are the same moment everywhere.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.price import Window, plan_of, shapley, unpriced, window_of
from syncscope.analysis.rank import Rank
from syncscope.analysis.replay import Meeting, Times, walk
from syncscope.analysis.summary import Key, key_of
from syncscope.analysis.verdict import GATE, WORTH
from syncscope.errors import UserError
from syncscope.model.report import Price
from syncscope.model.source import Place

ALONE = 64  # up to so many ranks each is also replayed with the reads of all others left in
CAUSES = ("waits in reads", "launches", "host work", "device work", "a late start")


@dataclass(frozen=True, slots=True)
class Meet:
    """One collective of the job, ns of the job's clock: who came last, how long after the first, and why.

    `imposed` is the sum of what the others waited for it. `cause` is what the last one spent most of its extra time on.
    """

    key: str
    late: int  # number of the rank
    skew: float
    imposed: float
    cause: str
    transfer: float


@dataclass(frozen=True, slots=True)
class RankLine:
    """A rank's part in the job. Times are ns: `symptom` is what its reads waited because other ranks were late."""

    number: int
    name: str
    length: float
    blocked: float
    symptom: float
    late: int
    imposed: float
    cause: str
    saved_alone: float | None  # what the job gains if only this rank made no read
    offset: float  # of its clock


@dataclass(frozen=True, slots=True)
class JobLine:
    """A line on all ranks together; `blocked` ns per step on the mean rank, `price` what the job gains per step."""

    op: str
    place: Place | None
    function: str
    module: str
    ranks: int
    count: float
    blocked: float
    price: Price | None


@dataclass(frozen=True, slots=True)
class Job:
    """What was concluded from all ranks. Times are ns per step."""

    ranks: tuple[RankLine, ...]
    meets: tuple[Meet, ...]
    lines: tuple[JobLine, ...]
    step: float
    saving: float | None
    fidelity: float
    plan: tuple[int, ...]
    verdict: str
    notes: tuple[str, ...]


def job(ranks: Sequence[Rank], seed: int = 0) -> Job:
    """Match the collectives of these ranks, align their clocks, and replay them together.

    Raises:
        UserError: there is no rank, or two have one number.
    """
    ranks = _numbered(ranks)
    together = Together(ranks)
    members = _lines(ranks)
    value = _JobValue(together, list(members.values()))
    meets = together.meets()
    trusted = value.error <= GATE
    count = len(members)
    found: list[Price | None] = [None] * count
    saving: float | None = None
    plan: tuple[int, ...] = ()
    if trusted and count:
        single = np.eye(count, dtype=bool)
        alone, but = value(single), value(~single)
        saving = float(value(np.ones((1, count), bool))[0])
        share, error = shapley(value, count, alone, seed)
        priced = [
            Price(float(a), float(saving - b), float(s), float(e))
            for a, b, s, e in zip(alone, but, share, error, strict=True)
        ]
        found = list(priced)
        plan = plan_of(value, count, saving, priced)[0] if saving >= WORTH * value.step else ()
    elif trusted:
        saving = 0.0
    steps = max(1, len(ranks[0].graph.steps))
    lines = [_line(key, rows, ranks, steps, price) for (key, rows), price in zip(members.items(), found, strict=True)]

    def dear(i: int) -> tuple[float, float]:
        price = found[i]
        return -(price.share if price else 0.0), -lines[i].blocked

    order = sorted(range(count), key=dear)
    position = {old: new for new, old in enumerate(order)}
    single_rank = value.by_rank() if trusted and len(ranks) <= ALONE else [None] * len(ranks)
    rows = together.rows(meets, single_rank)
    return Job(
        ranks=rows,
        meets=meets,
        lines=tuple(lines[i] for i in order),
        step=value.step,
        saving=saving,
        fidelity=value.error,
        plan=tuple(position[i] for i in plan),
        verdict=_verdict(value.step, saving, value.error, rows, meets),
        notes=together.notes,
    )


def _numbered(ranks: Sequence[Rank]) -> list[Rank]:
    if not ranks:
        raise UserError("there is no rank to analyse", "give the folder that holds one trace for each rank")
    found = [replace(rank, number=i) if rank.number < 0 else rank for i, rank in enumerate(ranks)]
    double = [number for number, times in Counter(r.number for r in found).items() if times > 1]
    if double:
        names = ", ".join(r.name for r in found if r.number == double[0])
        raise UserError(f"rank {double[0]} is there twice: {names}", "give the traces of one job, one for each rank")
    return sorted(found, key=lambda rank: rank.number)


class Together:
    """Ranks with their collectives matched and their clocks aligned."""

    def __init__(self, ranks: Sequence[Rank]) -> None:
        self.ranks = ranks
        self.notes: tuple[str, ...] = ()
        self._who: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for r, rank in enumerate(ranks):
            for c, collective in enumerate(rank.collectives):
                self._who[collective.key].append((r, c))
        common = [key for key, who in self._who.items() if len(who) == len(ranks)]
        self.offsets = self._aligned(common)
        first = min(rank.origin + offset for rank, offset in zip(ranks, self.offsets, strict=True))
        self.begins = [float(rank.origin + offset - first) for rank, offset in zip(ranks, self.offsets, strict=True)]
        self._transfer = {
            key: min(ranks[r].collectives[c].end - ranks[r].collectives[c].start for r, c in who)
            for key, who in self._who.items()
        }
        partial = sum(len(who) < len(ranks) for who in self._who.values())
        said = [f"{partial:,} collectives of some ranks only; they wait for those that have them"] if partial else []
        if not self._who:
            said.append("no collective was found: the ranks are taken as independent")
        self.notes = tuple(said)

    def _aligned(self, common: list[str]) -> list[int]:
        """What to add to each rank's clock: the ends of common collectives are one moment."""
        base = self.ranks[0].origin  # taken off first: a double cannot hold nanoseconds since 1970
        ends = [{c.key: rank.origin - base + c.end for c in rank.collectives} for rank in self.ranks]
        if not common:
            return [0] * len(self.ranks)
        return [int(statistics.median(ends[0][key] - own[key] for key in common)) for own in ends]

    def replay(self, freed: Sequence[NDArray[np.bool_]]) -> tuple[Times, Times]:
        """The job's end in each scenario, and the ends of its steps; `freed[r][s, i]` takes read i of rank r out."""
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
            key = self.ranks[r].collectives[meeting.collective].key
            here[key].append((r, meeting))
            if len(here[key]) == len(self._who[key]):
                ready += self._released(key, here.pop(key))
        steps = min(ends.shape[1] for _, ends in over.values())
        end = np.max([o[0] for o in over.values()], axis=0)
        return end, np.max([o[1][:, :steps] for o in over.values()], axis=0)

    def _released(self, key: str, there: list[tuple[int, Meeting]]) -> list[tuple[int, Times]]:
        end = np.max([meeting.arrival for _, meeting in there], axis=0) + self._transfer[key]
        return [(r, end) for r, _ in there]

    @property
    def measured(self) -> float:
        """When the last rank had ended in the recording, ns of the job's clock."""
        return max(begin + rank.graph.end for begin, rank in zip(self.begins, self.ranks, strict=True))

    def meets(self) -> tuple[Meet, ...]:
        """The collectives of more than one rank in the order of their ends."""
        found = []
        for key, who in self._who.items():
            if len(who) < 2:
                continue
            arrivals = [self.begins[r] + self.ranks[r].collectives[c].start for r, c in who]
            last = int(np.argmax(arrivals))
            imposed = sum(arrivals[last] - a for a in arrivals)
            late = self.ranks[who[last][0]].number
            skew = arrivals[last] - min(arrivals)
            found.append((arrivals[last], Meet(key, late, skew, imposed, self._cause(who, last), self._transfer[key])))
        return tuple(meet for _, meet in sorted(found, key=lambda pair: pair[0]))

    def _cause(self, who: list[tuple[int, int]], last: int) -> str:
        """What the last rank spent more time on than the middle one, since the collective before."""
        spent = []
        for r, c in who:
            one = self.ranks[r].collectives[c]
            spent.append([one.blocked, one.launching, one.hosting, one.queued, self.begins[r] if c == 0 else 0.0])
        table = np.array(spent)
        extra = table[last] - np.median(np.delete(table, last, axis=0), axis=0)
        return CAUSES[int(np.argmax(extra))]

    def rows(self, meets: tuple[Meet, ...], alone: Sequence[float | None]) -> tuple[RankLine, ...]:
        """What each rank did to the others, and what they did to it."""
        late: dict[int, list[Meet]] = defaultdict(list)
        for meet in meets:
            late[meet.late].append(meet)
        arrivals = {
            key: max(self.begins[r] + self.ranks[r].collectives[c].start for r, c in who)
            for key, who in self._who.items()
        }
        found = []
        for r, rank in enumerate(self.ranks):
            own = late[rank.number]
            causes: Counter[str] = Counter()
            for meet in own:
                causes[meet.cause] += int(meet.imposed)
            found.append(
                RankLine(
                    number=rank.number,
                    name=rank.name,
                    length=rank.graph.end,
                    blocked=float(sum(read.blocked for read in rank.graph.reads)),
                    symptom=self._symptom(r, arrivals),
                    late=len(own),
                    imposed=sum(meet.imposed for meet in own),
                    cause=causes.most_common(1)[0][0] if causes else "",
                    saved_alone=alone[r],
                    offset=float(self.offsets[r]),
                )
            )
        return tuple(found)

    def _symptom(self, r: int, arrivals: dict[str, float]) -> float:
        """How long the reads of a rank were blocked while one of its collectives waited for another rank."""
        rank, begin = self.ranks[r], self.begins[r]
        waits = [(c.start, max(c.start, arrivals[c.key] - begin)) for c in rank.collectives]
        zero = rank.graph.origin
        total = 0.0
        for read in rank.graph.reads:
            since, until = read.start - zero, read.start - zero + read.blocked
            total += sum(max(0.0, min(until, end) - max(since, start)) for start, end in waits)
        return total


class _JobValue:
    """What removing lines on all ranks saves the job, ns per step."""

    def __init__(self, together: Together, lines: Sequence[Sequence[tuple[int, int]]]) -> None:
        self._together = together
        ranks = together.ranks
        self._reads = [np.zeros((len(lines), len(rank.graph.reads)), bool) for rank in ranks]
        left = [unpriced(rank.graph) for rank in ranks]
        for number, members in enumerate(lines):
            for r, read in members:
                if read not in left[r]:
                    self._reads[r][number, read] = True
        count = min(len(rank.graph.steps) for rank in ranks)
        self._window = window_of(ranks[0].graph) if count >= 4 else Window(steps=max(1, count))
        nothing = [np.zeros((1, reads.shape[1]), bool) for reads in self._reads]
        end, ends = together.replay(nothing)
        self.step = float(self._window.length(end, ends)[0])
        self.error = abs(float(end[0]) - together.measured) / together.measured if together.measured else 0.0

    def __call__(self, sets: NDArray[np.bool_]) -> NDArray[np.float64]:
        freed = [(sets.astype(np.uint8) @ reads.astype(np.uint8)) > 0 for reads in self._reads]
        return self.step - self._window.length(*self._together.replay(freed))

    def by_rank(self) -> list[float | None]:
        """What the job gains if one rank alone makes no read."""
        count = len(self._reads)
        freed = [np.zeros((count, reads.shape[1]), bool) for reads in self._reads]
        for r, reads in enumerate(self._reads):
            freed[r][r] = reads.any(axis=0)
        gains: list[float] = (self.step - self._window.length(*self._together.replay(freed))).tolist()
        return list(gains)


def _lines(ranks: Sequence[Rank]) -> dict[Key, list[tuple[int, int]]]:
    found: dict[Key, list[tuple[int, int]]] = defaultdict(list)
    for r, rank in enumerate(ranks):
        for number, read in enumerate(rank.graph.reads):
            found[key_of(read)].append((r, number))
    return dict(found)


def _line(key: Key, members: list[tuple[int, int]], ranks: Sequence[Rank], steps: int, price: Price | None) -> JobLine:
    op, place, module, function, _ = key
    own = [ranks[r].graph.reads[number] for r, number in members]
    share = steps * len(ranks)
    return JobLine(
        op=op,
        place=place,
        function=function,
        module=module or own[0].module,
        ranks=len({r for r, _ in members}),
        count=len(own) / share,
        blocked=sum(read.blocked for read in own) / share,
        price=price,
    )


def _verdict(
    step: float, saving: float | None, error: float, rows: tuple[RankLine, ...], meets: tuple[Meet, ...]
) -> str:
    slow = max(rows, key=lambda row: row.imposed)
    told = ""
    if slow.imposed > 0:
        told = (
            f" Rank {slow.number} comes last to {slow.late} of {len(meets)} collectives and makes the others wait "
            f"{_ms(slow.imposed)} in sum, mostly by {slow.cause}."
        )
    if saving is None:
        return f"No prices: the joint replay ends {error:.1%} away from the recording.{told}"
    blocked, symptom = sum(row.blocked for row in rows), sum(row.symptom for row in rows)
    because = f" Of {_ms(blocked)} blocked on all ranks, {_ms(symptom)} are waits for other ranks."
    if saving <= WORTH * step:
        gain = f"without any, the job's {_ms(step)} would be {_ms(max(0.0, saving))} shorter"
        return f"No read is worth fixing: {gain}.{because}{told}"
    gain = f"takes {_ms(step - saving)} instead of {_ms(step)} ({saving / step:.1%} less)"
    return f"Without its reads the job {gain}.{because}{told}"


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.2f} ms"
