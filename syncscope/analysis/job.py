"""What a line costs a whole job, and which rank makes the others wait."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.absent import absent
from syncscope.analysis.errors import half_interval
from syncscope.analysis.evenness import HARDLY, are_even
from syncscope.analysis.job_verdict import job_verdict, of_one_rank, steps_met, why_none
from syncscope.analysis.joint_replay import JointReplay, Meet, RankLine, owed_by
from syncscope.analysis.one_job import refuse_strangers
from syncscope.analysis.owed import LateBy
from syncscope.analysis.price import TimedPart, plan_of, shapley, unpriced
from syncscope.analysis.rank import Rank, common_steps
from syncscope.analysis.slow_hosts import Pace, slow_hosts, told_of_hosts
from syncscope.analysis.steps import COUNTED
from syncscope.analysis.summary import Key, key_of
from syncscope.analysis.verdict import WORTH, unforeseen_told
from syncscope.errors import UserError
from syncscope.model.report import GATE, Price
from syncscope.model.source import Place

SLIGHTLY = 0.02  # by how much the steps of ranks may be longer than the job's without a word
ALONE = 64  # up to so many ranks each is also replayed with the reads of all others left in


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
    unforeseen: bool = False  # on some rank nobody can say what a step takes without it: it has no price


@dataclass(frozen=True, slots=True)
class JobReport:
    """What was concluded from all ranks. Times are ns per step.

    `saving_range` is the least and the most that a step saves without any read, by the spread of the steps and the error of the
    joint replay; None where too few steps were recorded. What takes the place of the reads is not in it. `unmatched` is how
    many collectives were not found on all ranks that take part, and `untold` how long their kernels lasted on all ranks, in the
    steps that all have and in all: nobody knows how much of that were waits. Where no step is `marked`, the whole recording
    stands in place of a step. The ranks are `even` where none makes the others wait more than chance has it, or hardly any;
    None where too few steps were recorded to tell. `world` is how many ranks the job has, 0 where no recording says that, and
    `missing` are those of which none is here, where the recordings say which they are of. `slow_hosts` are the ranks that come
    last by their hosts, and whose hosts are slower in all that they do.
    """

    ranks: tuple[RankLine, ...]
    meets: tuple[Meet, ...]
    lines: tuple[JobLine, ...]
    step: float
    saving: float | None
    fidelity: float
    plan: tuple[int, ...]
    verdict: str
    notes: tuple[str, ...]
    saving_range: tuple[float, float] | None = None
    unmatched: int = 0
    untold: float = 0.0
    marked: bool = True
    even: bool | None = None
    world: int = 0
    missing: tuple[int, ...] = ()
    slow_hosts: tuple[Pace, ...] = ()

    @property
    def here(self) -> str:
        """How many ranks are here, of as many as there are: `7 of 8`."""
        return f"{len(self.ranks)} of {self.world:,}" if len(self.ranks) < self.world else str(len(self.ranks))


def job(ranks: Sequence[Rank], seed: int = 0) -> JobReport:
    """Match the collectives of these ranks, align their clocks, and replay them together.

    Raises:
        UserError: there is no rank, two have one number, or they cannot be of one job.
    """
    gone = absent(ranks)
    ranks = in_order(ranks)
    joint = JointReplay(ranks)
    members, unforeseen = _lines(ranks)
    value = _JobValue(joint, list(members.values()))
    meets = joint.meets()
    by_host = {owed.rank for meet in meets for owed in meet.owed if owed.cause is LateBy.HOST and not meet.together}
    slow = tuple(pace for pace in slow_hosts(joint.ranks) if pace.number in by_host)
    doubtful = [rank for rank in ranks if rank.error is not None and rank.error > GATE]
    others = ranks[0].world - 1 if len(ranks) == 1 else 0  # of which nothing is here
    cut = next((rank for rank in ranks if len(rank.graph.steps) == 1 < len(joint.steps)), None)
    uncoupled = [joint.ranks[r] for r in joint.matched.uncoupled]
    trusted = value.error <= GATE and not doubtful and others <= 0 and cut is None and not uncoupled
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
    of = [rank.counted() for rank in ranks]
    lines = [_line(key, rows, ranks, of, price) for (key, rows), price in zip(members.items(), found, strict=True)]
    lines += [replace(_line(key, rows, ranks, of, None), unforeseen=True) for key, rows in unforeseen.items()]

    def dear(i: int) -> tuple[float, float]:
        price = lines[i].price
        return -(price.share if price else 0.0), -lines[i].blocked

    between = value.between(saving) if saving else None
    order = sorted(range(len(lines)), key=dear)
    position = {old: new for new, old in enumerate(order)}
    single_rank = value.by_rank() if trusted and len(ranks) <= ALONE else [None] * len(ranks)
    rows = joint.rows(meets, single_rank, value.on_time(meets) if value.error <= GATE else {})
    counted = common_steps(joint.ranks)
    even = are_even(rows, joint.ranks, counted, steps_met(meets), value.step) if meets else None
    if even and joint.untold() > HARDLY * value.step * max(1, len(counted)) * (len(ranks) - 1):
        even = None  # who waits in these, nobody knows
    return JobReport(
        ranks=rows,
        meets=meets,
        lines=tuple(lines[i] for i in order),
        step=value.step,
        saving=saving,
        fidelity=value.error,
        plan=tuple(position[i] for i in plan),
        verdict=of_one_rank(ranks[0], others)
        if others > 0
        else (gone.told + " ").lstrip()
        + job_verdict(value.step, saving, between, why_none(value.error, doubtful, cut, uncoupled), rows, joint, even)
        + told_of_hosts(slow)
        + _unforeseen(lines),
        notes=(*joint.notes, *_longer_steps(rows, value)),
        saving_range=between,
        unmatched=len(joint.matched.alone) + len(joint.matched.partial),
        untold=joint.untold(),
        marked=bool(joint.steps),
        even=even,
        world=gone.world,
        missing=gone.numbers,
        slow_hosts=slow,
    )


def _longer_steps(rows: Sequence[RankLine], value: _JobValue) -> list[str]:
    """That the steps of ranks are longer than the job's, and why, where that is so."""
    longest = max((row.times.step for row in rows if row.times is not None), default=0.0)
    said = (
        "the job's step begins where the last rank comes to it, and that of each rank where this one does: the others' are "
        "longer by what they did, or waited, until then"
    )
    return [said] if value.since > 0 and longest > (1 + SLIGHTLY) * value.step else []


def in_order(ranks: Sequence[Rank]) -> list[Rank]:
    """The ranks by their numbers, which are those of their places where recordings say none.

    Raises:
        UserError: there is none, two have one number, or they cannot be of one job.
    """
    if not ranks:
        raise UserError("there is no rank to analyse", "give the folder that holds one trace for each rank")
    refuse_strangers(ranks)
    found = [replace(rank, number=i) if rank.number < 0 else rank for i, rank in enumerate(ranks)]
    return sorted(found, key=lambda rank: rank.number)


class _JobValue:
    """What removing lines on all ranks saves the job, ns per step."""

    def __init__(self, joint: JointReplay, lines: Sequence[Sequence[tuple[int, int]]]) -> None:
        self._joint = joint
        ranks = joint.ranks
        self._reads = [np.zeros((len(lines), len(rank.graph.reads)), bool) for rank in ranks]
        left = [unpriced(rank.graph) for rank in ranks]
        for number, members in enumerate(lines):
            for r, read in members:
                if read not in left[r]:
                    self._reads[r][number, read] = True
        self._window = _window(joint)
        if not joint.matched.who:
            joint.begin_together(self._window.first)
            self._window = _window(joint)
        nothing = [np.zeros((1, reads.shape[1]), bool) for reads in self._reads]
        end, ends = joint.replay(nothing)
        self.step = float(self._window.length(end, ends)[0])
        self.since = self._window.since  # ns of the job's clock, where the first step is counted from
        self.error = abs(float(end[0]) - joint.measured) / joint.measured if joint.measured else 0.0

    def __call__(self, sets: NDArray[np.bool_]) -> NDArray[np.float64]:
        freed = [(sets.astype(np.uint8) @ reads.astype(np.uint8)) > 0 for reads in self._reads]
        return self.step - self._window.length(*self._joint.replay(freed))

    def between(self, saving: float) -> tuple[float, float] | None:
        """What is saved without any read at least and at most: the 95 % interval by the spread over the counted steps, and the
        error of the replay; None of too few steps."""
        window = self._window
        if window.first < 0 or window.steps < 2:
            return None
        _, ends = self._joint.replay([np.repeat([[False], [True]], reads.shape[1], axis=1) for reads in self._reads])
        lengths = np.diff(ends[:, window.first : window.last + 1], axis=1)
        margin = half_interval(lengths[0] - lengths[1]) + self.error * self.step
        return saving - margin, saving + margin

    def by_rank(self) -> list[float | None]:
        """What the job gains if one rank alone makes no read."""
        count = len(self._reads)
        freed = [np.zeros((count, reads.shape[1]), bool) for reads in self._reads]
        for r, reads in enumerate(self._reads):
            freed[r][r] = reads.any(axis=0)
        gains: list[float] = (self.step - self._window.length(*self._joint.replay(freed))).tolist()
        return list(gains)

    def on_time(self, meets: Sequence[Meet]) -> dict[int, float]:
        """What the others gain if they never wait for a rank but where its recording begins later, by its position: of at most
        `ALONE` ranks, those that hold others up most."""
        owed = {rank: causes.total() for rank, causes in owed_by(meets).items()}
        slow = sorted(owed, key=lambda rank: -owed[rank])[:ALONE]
        starts = {meet.key for meet in meets if meet.cause is LateBy.START}
        found = {}
        for r, rank in enumerate(self._joint.ranks):
            if rank.number in slow:
                usual, shorter = self._window.length(*self._joint.unwaited(r, starts)).tolist()
                found[r] = usual - shorter
        return found


def _window(joint: JointReplay) -> TimedPart:
    """The steps that are timed: of those that all ranks have, the most that follow one another, from where the one before ended
    on those that have that. The whole recording where it has no more than a few, all of them on all ranks, or none in common;
    from where the last rank came to its first step, as a step ends when the last has done it.
    """
    common = common_steps(joint.ranks)
    few = len(joint.steps) < COUNTED and all(len(rank.graph.steps) == len(joint.steps) for rank in joint.ranks)
    if few or not common:
        came = [begin + rank.graph.begin for begin, rank in zip(joint.begins, joint.ranks, strict=True)]
        return TimedPart(steps=max(1, len(common)), since=max(came) if common else 0.0)
    runs = [[joint.steps.index(min(common))]]
    for position in sorted(joint.steps.index(step) for step in common)[1:]:
        if position == runs[-1][-1] + 1:
            runs[-1].append(position)
        else:
            runs.append([position])
    first, *_, last = max(([run[0], *run] for run in runs), key=len)
    return TimedPart(first - 1, last, last - first + 1)


def _lines(ranks: Sequence[Rank]) -> tuple[dict[Key, list[tuple[int, int]]], dict[Key, list[tuple[int, int]]]]:
    """The reads of each line, as rank and number; apart, those of lines that are unforeseen on any rank."""
    found: dict[Key, list[tuple[int, int]]] = defaultdict(list)
    for r, rank in enumerate(ranks):
        for number, read in enumerate(rank.graph.reads):
            found[key_of(read)].append((r, number))
    apart = {key for key, rows in found.items() if any(number in ranks[r].unforeseen for r, number in rows)}
    return {k: v for k, v in found.items() if k not in apart}, {k: v for k, v in found.items() if k in apart}


def _unforeseen(lines: Sequence[JobLine]) -> str:
    """A sentence on the lines without a price; empty where there are none."""
    named = [f"`{line.op}`" + (f" at {line.place}" if line.place else "") for line in lines if line.unforeseen]
    return f" {unforeseen_told(named)}" if named else ""


def _line(
    key: Key,
    members: list[tuple[int, int]],
    ranks: Sequence[Rank],
    counted: Sequence[tuple[frozenset[int], int]],
    price: Price | None,
) -> JobLine:
    op, place, module, function, *_ = key
    own = [(ranks[r].graph.reads[number], counted[r][1]) for r, number in members if number in counted[r][0]]
    return JobLine(
        op=op,
        place=place,
        function=function,
        module=module or ranks[members[0][0]].graph.reads[members[0][1]].module,
        ranks=len({r for r, _ in members}),
        count=sum(1 / steps for _, steps in own) / len(ranks),
        blocked=sum(read.held / steps for read, steps in own) / len(ranks),
        price=price,
    )
