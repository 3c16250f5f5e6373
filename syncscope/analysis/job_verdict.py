"""What is said of a job: what it saves without its syncs, and which rank makes the others wait."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from syncscope.analysis.evenness import HARDLY, waits_of_a_step
from syncscope.analysis.joint_replay import owed_by
from syncscope.analysis.owed import LateBy
from syncscope.analysis.verdict import WORTH
from syncscope.model.answer import between as lies_between
from syncscope.model.durations import in_ms

if TYPE_CHECKING:
    from syncscope.analysis.joint_replay import JointReplay, LongerIn, Meet, RankLine
    from syncscope.analysis.rank import Rank

NAMED = 3  # operators in the verdict
MOSTLY = 0.5  # the part of a delay that operators explain, from which they are what it is by


def of_one_rank(rank: Rank, others: int) -> str:
    """What is said of one rank of a job, without the others."""
    return (
        f"No savings: of rank {rank.number} alone, without the {others} others, nobody can tell what its waits cost the job. "
        "`syncscope report` of its file says what they cost this rank."
    )


def job_verdict(
    step: float,
    saving: float | None,
    between: tuple[float, float] | None,
    why_not: str,
    rows: tuple[RankLine, ...],
    joint: JointReplay,
    even: bool | None,
) -> str:
    """What the job saves without its syncs, and who makes the others wait: that which matters more first."""
    slow, meets, steps = max(rows, key=lambda row: row.imposed), joint.meets(), steps_met(joint.meets())
    told = ""
    if even and slow.cause is not LateBy.START:
        told = f" {_even(slow, len(rows), len(meets), steps, step)}"
    elif slow.imposed > 0:
        told = (
            f" Rank {slow.number} comes last to {slow.late} of {len(meets)} collectives and makes the others wait "
            f"{in_ms(slow.imposed)} in sum{f' over {steps} steps' if steps > 1 else ''}"
            f"{_of_a_step(waits_of_a_step(slow.imposed, len(rows), steps, step) if steps else 0.0)}, mostly by {slow.cause}."
        )
        if slow.on_time is not None and slow.on_time >= WORTH * step:
            whole = "a step" if steps else "the job"
            told += f" Had it come with the one before it, {whole} would be up to {in_ms(slow.on_time)} shorter."
        told += _of_operators(slow, [meet for meet in meets if meet.late == slow.number and not meet.together], joint)
    if slow.imposed > 0 and slow.cause is LateBy.START:
        told += " Its recording begins later than those of the others, and what made it late lies before: "
        told += "record from an earlier step."
        told += (
            " But for that the ranks are about even." if even else _but_for_late_starts(meets, len(rows), steps, step)
        )
    each = slow.imposed / max(1, len(rows) - 1)
    if saving is not None and not even and each > max(0.0, saving):  # who is late matters more than any sync
        return f"{told.strip()} {_of_syncs(step, saving, between, why_not, rows)}".strip()
    return f"{_of_syncs(step, saving, between, why_not, rows)}{told}"


def _of_a_step(share: float) -> str:
    return f", each {share:.1%} of a step" if share else ""


def _but_for_late_starts(meets: Sequence[Meet], ranks: int, steps: int, step: float) -> str:
    """For which rank the others wait most besides, as a limit counts it; "" where they hardly do."""
    owed = owed_by(meets)
    for causes in owed.values():
        del causes[LateBy.START]
    most = max(owed, key=lambda number: owed[number].total())
    share = waits_of_a_step(owed[most].total(), ranks, steps, step)
    if share <= HARDLY or not steps:
        return ""
    (cause, _), *_ = owed[most].most_common()
    return f" But for that they wait most for rank {most}, each {share:.1%} of a step, mostly by {cause}."


def steps_met(meets: Sequence[Meet]) -> int:
    """In how many steps ranks meet: so many the figures of the whole recording are of."""
    return len({meet.step for meet in meets if meet.step >= 0})


def _even(slow: RankLine, ranks: int, meets: int, steps: int, step: float) -> str:
    """That no rank holds up the others; "" where they do not meet."""
    if not slow.imposed:
        return "The ranks are even: all come to their collectives at one moment." if meets else ""
    over = f" over {steps} steps" if steps > 1 else ""
    share = waits_of_a_step(slow.imposed, ranks, steps, step)
    little = f"which is {share:.1%} of a step" if share <= HARDLY else f"no more than {steps} steps have by chance"
    return (
        f"The ranks are about even: that which the others wait for most, rank {slow.number}, comes last to {slow.late} of "
        f"{meets} collectives and makes them wait {in_ms(slow.imposed)} in sum{over}, {little}."
    )


def why_none(error: float, doubtful: Sequence[Rank], cut: Rank | None, uncoupled: Sequence[Rank]) -> str:
    """Why nobody can tell what the job saves, where that is so."""
    if cut is not None:
        return f"of rank {cut.number} only one step was recorded, and what its waits delay lies behind it"
    if doubtful:
        worst = max(doubtful, key=lambda rank: rank.error or 0.0)
        others = f" (and of {len(doubtful) - 1} more)" if len(doubtful) > 1 else ""
        whole = "a step" if worst.graph.steps else "the recording"
        return f"{worst.error:.0%} of {whole} of rank {worst.number}{others} is for no recorded reason"
    if uncoupled:
        named = ", ".join(str(rank.number) for rank in uncoupled[:NAMED])
        more = f" and {len(uncoupled) - NAMED} more" if len(uncoupled) > NAMED else ""
        which = "ranks" if len(uncoupled) > 1 else "rank"
        return (
            f"no collective of {which} {named}{more} was found on another rank, so who waits for whom nobody can tell"
        )
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
    if lines := [each for each in slow.lines if in_ms(each.own) != in_ms(each.others)]:
        what = "device" if slow.cause is LateBy.DEVICE else "host"
        by = "By line, its" if any(each.line for each in lines) else "Its"
        said += f" {by} {what} was longer {_longer(lines, 'in', '')}."
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
    return "before" if each.before else "at" if each.line else otherwise


def _of_syncs(
    step: float,
    saving: float | None,
    between: tuple[float, float] | None,
    why_not: str,
    rows: tuple[RankLine, ...],
) -> str:
    """What the job saves without its syncs, and how many of these only wait for others."""
    if saving is None:
        return f"No savings: {why_not}."
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
