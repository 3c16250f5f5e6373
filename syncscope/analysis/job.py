"""What a line costs a whole job, and which rank makes the others wait."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.errors import half_interval
from syncscope.analysis.joint_replay import JointReplay, LongerIn, Meet, RankLine, owed_by
from syncscope.analysis.one_job import refuse_strangers
from syncscope.analysis.owed import LateBy
from syncscope.analysis.price import TimedPart, plan_of, shapley, unpriced
from syncscope.analysis.rank import Rank, common_steps
from syncscope.analysis.steps import COUNTED
from syncscope.analysis.summary import Key, key_of
from syncscope.analysis.verdict import WORTH, unforeseen_told
from syncscope.errors import UserError
from syncscope.model.answer import between as lies_between
from syncscope.model.durations import in_ms
from syncscope.model.report import GATE, Price
from syncscope.model.source import Place

NAMED = 3  # operators in the verdict
MOSTLY = 0.5  # the part of a delay that operators explain, from which they are what it is by
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
    stands in place of a step.
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


def job(ranks: Sequence[Rank], seed: int = 0) -> JobReport:
    """Match the collectives of these ranks, align their clocks, and replay them together.

    Raises:
        UserError: there is no rank, two have one number, or they cannot be of one job.
    """
    ranks = in_order(ranks)
    joint = JointReplay(ranks)
    members, unforeseen = _lines(ranks)
    value = _JobValue(joint, list(members.values()))
    meets = joint.meets()
    doubtful = [rank for rank in ranks if rank.error is not None and rank.error > GATE]
    others = ranks[0].world - 1 if len(ranks) == 1 else 0  # of which nothing is here
    cut = next((rank for rank in ranks if len(rank.graph.steps) == 1 < len(joint.steps)), None)
    trusted = value.error <= GATE and not doubtful and others <= 0 and cut is None
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
    return JobReport(
        ranks=rows,
        meets=meets,
        lines=tuple(lines[i] for i in order),
        step=value.step,
        saving=saving,
        fidelity=value.error,
        plan=tuple(position[i] for i in plan),
        verdict=_alone(ranks[0], others)
        if others > 0
        else _verdict(value.step, saving, between, _why_none(value.error, doubtful, cut), rows, joint)
        + _unforeseen(lines),
        notes=joint.notes,
        saving_range=between,
        unmatched=len(joint.matched.alone) + len(joint.matched.partial),
        untold=joint.untold(),
        marked=bool(joint.steps),
    )


def _alone(rank: Rank, others: int) -> str:
    """What is said of one rank of a job, without the others."""
    return (
        f"No savings: of rank {rank.number} alone, without the {others} others, nobody can tell what its waits cost the job. "
        "`syncscope report` of its file says what they cost this rank."
    )


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
        nothing = [np.zeros((1, reads.shape[1]), bool) for reads in self._reads]
        end, ends = joint.replay(nothing)
        self.step = float(self._window.length(end, ends)[0])
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


def _verdict(
    step: float,
    saving: float | None,
    between: tuple[float, float] | None,
    why_none: str,
    rows: tuple[RankLine, ...],
    joint: JointReplay,
) -> str:
    slow, meets, steps = max(rows, key=lambda row: row.imposed), joint.meets(), len(joint.steps)
    told = ""
    if slow.imposed > 0:
        told = (
            f" Rank {slow.number} comes last to {slow.late} of {len(meets)} collectives and makes the others wait "
            f"{in_ms(slow.imposed)} in sum{f' over {steps} steps' if steps > 1 else ''}, mostly by {slow.cause}."
        )
        if slow.on_time is not None and slow.on_time >= WORTH * step:
            whole = "a step" if steps else "the job"
            told += f" Had it come with the one before it, {whole} would be up to {in_ms(slow.on_time)} shorter."
        told += _of_operators(slow, [meet for meet in meets if meet.late == slow.number and not meet.together], joint)
    if slow.imposed > 0 and slow.cause is LateBy.START:
        told += " Its recording begins later than those of the others, and what made it late lies before: "
        told += "record from an earlier step."
    each = slow.imposed / max(1, len(rows) - 1)
    if saving is not None and each > max(0.0, saving):  # who is late matters more than any sync
        return f"{told.strip()} {_of_syncs(step, saving, between, why_none, rows)}".strip()
    return f"{_of_syncs(step, saving, between, why_none, rows)}{told}"


def _why_none(error: float, doubtful: Sequence[Rank], cut: Rank | None) -> str:
    """Why nobody can tell what the job saves, where that is so."""
    if cut is not None:
        return f"of rank {cut.number} only one step was recorded, and what its waits delay lies behind it"
    if doubtful:
        worst = max(doubtful, key=lambda rank: rank.error or 0.0)
        others = f" (and of {len(doubtful) - 1} more)" if len(doubtful) > 1 else ""
        whole = "a step" if worst.graph.steps else "the recording"
        return f"{worst.error:.0%} of {whole} of rank {worst.number}{others} is for no recorded reason"
    return f"the joint replay ends {error:.1%} away from the recording"


def _of_operators(slow: RankLine, late: Sequence[Meet], joint: JointReplay) -> str:
    """Sentences on what a rank does longer before the collectives to which it comes `late`, by operator and by line, and how
    little of that they are; empty where nothing is known of that."""
    said = ""
    skews = [meet.skew for meet in late if meet.cause is LateBy.HOST]
    if slow.cause is LateBy.HOST and slow.operators:
        said = f" Its host was longer {_longer(slow.operators, 'in', 'outside of operators')}"
        known = sum(each.own - each.others for each in slow.operators[:NAMED])
        little = known < MOSTLY * sum(skews)
        said += f": {in_ms(known)} of the {in_ms(sum(skews))} by which it came later." if little else "."
        if little and (before := _asked_later(joint, slow.number)) > max(skews):
            said += (
                f" Its host asked for the first of its collectives {in_ms(before)} later than the others did: "
                "what made it late lies before, as where the others had run ahead of their devices."
            )
    if slow.lines:
        what = "device" if slow.cause is LateBy.DEVICE else "host"
        said += f" By line, its {what} was longer {_longer(slow.lines, 'in', '')}."
    return said


def _asked_later(joint: JointReplay, number: int) -> float:
    """By how much later than the others' the host of this rank asked for the first collective in which it meets any, ns."""
    r = next(n for n, rank in enumerate(joint.ranks) if rank.number == number)
    met = [dict(who) for who in joint.matched.who.values() if len(who) > 1 and r in dict(who)]
    asked = {}
    for q, c in min(met, key=lambda who: who[r]).items():
        one = joint.ranks[q].collectives[c]
        asked[q] = joint.begins[q] + one.start - one.queued
    return asked.pop(r) - median(asked.values())


def _longer(told: Sequence[LongerIn], where: str, nowhere: str) -> str:
    return ", ".join(
        f"{f'{_where(each, where)} `{each.short}`' if each.name else nowhere} "
        f"({in_ms(each.own)}, the others {in_ms(each.others)})"
        for each in told[:NAMED]
    )


def _where(each: LongerIn, otherwise: str) -> str:
    return "before" if each.before else "at" if each.at_line else otherwise


def _of_syncs(
    step: float,
    saving: float | None,
    between: tuple[float, float] | None,
    why_none: str,
    rows: tuple[RankLine, ...],
) -> str:
    """What the job saves without its syncs, and how many of these only wait for others."""
    if saving is None:
        return f"No savings: {why_none}."
    blocked, symptom = sum(row.blocked for row in rows), sum(row.symptom for row in rows)
    because = f" Of {in_ms(blocked)} blocked on all ranks, {in_ms(symptom)} are waits for other ranks."
    surely = "surely " * (between is not None and between[1] > WORTH * step)
    known = (
        f"{lies_between(*between, in_ms)}{' less' * (between[0] >= 0)}, as its steps spread"
        if between
        else "from too few steps to know how far off that may be"
    )
    if saving <= WORTH * step or (between is not None and between[0] <= 0):
        change = f"{in_ms(abs(saving))} {'shorter' if saving >= 0 else 'longer'}"
        gain = f"without any on any rank, the job's {in_ms(step)} would be {change} ({known})"
        return f"No sync is {surely}worth fixing: {gain}.{because}"
    gain = f"takes {in_ms(step - saving)} instead of {in_ms(step)} ({saving / step:.1%}; {known})"
    return f"Without the syncs of all ranks the job {gain}.{because}"
