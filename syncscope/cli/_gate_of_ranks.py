"""Limits of `syncscope ranks` for CI: the syncs of a step, what they cost the job, and how long ranks wait for one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from syncscope.cli import _expected
from syncscope.cli._gate import COUNT_INSTEAD, NO_STEPS, SAVING, SYNCS, syncs, where
from syncscope.cli._limits import GivenLimit, judged
from syncscope.errors import UserError

if TYPE_CHECKING:
    from syncscope.analysis.job import JobReport
    from syncscope.analysis.owed import LateBy
    from syncscope.analysis.rank import Rank

WAIT = "--max-wait-for-rank"
FEW_STEPS = "how far steps vary is not known of fewer than four", "`syncscope run --active 24` records more"
HARDLY = 0.01  # of a step that others wait, from which a late start is worth a word


def limits(
    found: JobReport,
    ranks: Sequence[Rank],
    expect: int | None,
    most_syncs: float | None,
    most_saving: float | None,
    most_wait: float | None,
) -> Iterator[GivenLimit]:
    """Each limit that was given, with the lines that break it. Those but `most_syncs` are parts of a step of the job.

    None holds where a rank is missing: that may be the one which breaks it.
    """
    from syncscope.analysis.absent import absent

    given = _given(found, ranks, most_syncs, most_saving, most_wait)
    yield from _expected.of_all_ranks(given, _expected.missing(absent(ranks, expect)), expect)


def _given(
    found: JobReport,
    ranks: Sequence[Rank],
    most_syncs: float | None,
    most_saving: float | None,
    most_wait: float | None,
) -> Iterator[GivenLimit]:
    if most_syncs is not None:
        yield judged(
            f"{SYNCS} {most_syncs:g}", lambda: _syncs(found, ranks, most_syncs), lambda: _most_syncs_told(ranks)
        )
    if most_saving is not None:
        yield judged(f"{SAVING} {100 * most_saving:g}%", lambda: _saving(found, most_saving), lambda: _cost(found))
    if most_wait is not None:
        limit = judged(
            f"{WAIT} {100 * most_wait:g}%", lambda: _wait(found, ranks, most_wait), lambda: _longest_wait(found, ranks)
        )
        waited, _ = waited_for(found, ranks)
        longest = max(waited, key=lambda number: waited[number].total(), default=None)
        at = next((rank.name for rank in found.ranks if rank.number == longest), "")
        yield replace(limit, aside=_late_starts(found, ranks), at=at)


def _syncs(found: JobReport, ranks: Sequence[Rank], most: float) -> Iterator[str]:
    """By the rank that has the most; what the device's fallbacks read is no sync of the user's."""
    _refuse_without_steps(ranks)
    count, worst = _most_syncs(ranks)
    if count > most:
        yield f"{_name(worst)}: {syncs(count)} more than the {most:.3g} allowed:"
        for line in sorted(found.lines, key=lambda line: -line.count):
            on = f"on {line.ranks} ranks" if line.ranks > 1 else "on one rank"
            yield f"  {where(line)}: {line.count:.3g} per step of the mean rank, {on}"


def _most_syncs(ranks: Sequence[Rank]) -> tuple[float, Rank]:
    """How many syncs a step of the rank has that has the most, and which that is."""
    counts = []
    for rank in ranks:
        reads, steps = rank.counted()
        counts.append((sum(not rank.graph.reads[n].fallback for n in reads) / steps, rank))
    return max(counts, key=lambda pair: pair[0])


def _most_syncs_told(ranks: Sequence[Rank]) -> str:
    count, worst = _most_syncs(ranks)
    return f"{syncs(count).rpartition(' ')[0]} on {_name(worst)}, which has the most"


def _saving(found: JobReport, most: float) -> Iterator[str]:
    """By the lower end, as `report` judges."""
    if found.saving is None or not found.step:
        raise UserError(found.verdict, COUNT_INSTEAD)
    if found.saving_range is None:
        raise UserError(*FEW_STEPS)
    low, high = (end / found.step for end in found.saving_range)
    if low > most:
        said = f"{100 * found.saving / found.step:.1f} % of a step ({100 * low:.1f} to {100 * high:.1f} %)"
        yield f"the syncs cost the job {said}, more than the {100 * most:.6g} % allowed:"
        for line in found.lines:
            if line.price is not None and line.price.share > 0:
                yield f"  {where(line)}: {100 * line.price.share / found.step:.1f} % of a step"


def _cost(found: JobReport) -> str:
    """What the syncs cost the job."""
    share = (found.saving or 0.0) / found.step
    low, high = (end / found.step for end in found.saving_range or (0.0, 0.0))
    return f"the syncs cost the job {100 * share:.1f} % of a step ({100 * low:.1f} to {100 * high:.1f} %)"


def _longest_wait(found: JobReport, ranks: Sequence[Rank]) -> str:
    """For which rank the others wait most, and how long."""
    waited, of_a_step = waited_for(found, ranks)
    longest = max(waited, key=lambda number: waited[number].total(), default=None)
    if longest is None or not of_a_step:
        return "no rank waits for another"
    return (
        f"the other ranks wait {100 * waited[longest].total() / of_a_step:.1f} % of a step for rank {longest}, the most"
    )


def _wait(found: JobReport, ranks: Sequence[Rank], most: float) -> Iterator[str]:
    """As measured; of few steps nobody can say that it is more than chance."""
    from syncscope.analysis.rank import common_steps
    from syncscope.analysis.steps import COUNTED

    _refuse_without_steps(ranks)
    if len(ranks) < 2 or not common_steps(ranks) or not found.meets:
        why = "; ".join(found.notes) or "the ranks have no step in common"
        raise UserError(why, "name the traces of all ranks, of the same steps")
    waited, of_a_step = waited_for(found, ranks)
    longest = max((of_rank.total() for of_rank in waited.values()), default=0)
    if longest <= most * of_a_step < longest + found.untold:
        raise UserError(
            f"{found.unmatched} collectives were not found on all ranks: in their kernels the ranks may wait "
            f"{100 * found.untold / of_a_step:.1f} % of a step",
            "record again: events were lost, or the ranks are not of the same steps",
        )
    if longest > most * of_a_step and min(len(rank.graph.steps) for rank in ranks) < COUNTED:
        why, hint = FEW_STEPS
        raise UserError(f"{_longest_wait(found, ranks)}, and {why}", hint)
    for number, of_rank in sorted(waited.items(), key=lambda one: -one[1].total()):
        if (ns := of_rank.total()) > most * of_a_step:
            share = f"{100 * ns / of_a_step:.1f} % of a step"
            (cause, _), *_ = of_rank.most_common()
            yield f"the other ranks wait {share} for rank {number}, more than the {100 * most:.6g} % allowed, mostly by {cause}"


def waited_for(found: JobReport, ranks: Sequence[Rank]) -> tuple[dict[int, Counter[LateBy]], float]:
    """How long the other ranks waited for each in the steps that count, by what made it late, and how long these steps are on
    all of the others. A recording that only begins later makes nobody wait, nor does what follows from that."""
    from syncscope.analysis.joint_replay import owed_by
    from syncscope.analysis.owed import LateBy
    from syncscope.analysis.rank import common_steps

    counted = common_steps(ranks)
    causes = owed_by(meet for meet in found.meets if meet.step in counted)
    for of_rank in causes.values():
        del of_rank[LateBy.START]
    return causes, len(counted) * (len(ranks) - 1) * found.step


def _late_starts(found: JobReport, ranks: Sequence[Rank]) -> str:
    """That the ranks wait for one whose recording only begins later, which no limit counts; "" where they hardly do."""
    from syncscope.analysis.joint_replay import owed_by
    from syncscope.analysis.owed import LateBy
    from syncscope.analysis.rank import common_steps

    counted = common_steps(ranks)
    causes = owed_by(meet for meet in found.meets if meet.step in counted)
    waited = {number: of_rank[LateBy.START] for number, of_rank in causes.items()}
    of_a_step = len(counted) * (len(ranks) - 1) * found.step
    if not of_a_step or not waited or (ns := max(waited.values())) < HARDLY * of_a_step:
        return ""
    return (
        f"{WAIT} does not count a late start and what follows from it: the other ranks wait {100 * ns / of_a_step:.1f} % of a "
        f"step for rank {max(waited, key=lambda rank: waited[rank])}, whose recording begins later than theirs"
    )


def _refuse_without_steps(ranks: Sequence[Rank]) -> None:
    if any(not rank.graph.steps for rank in ranks):
        raise UserError(*NO_STEPS)


def _name(rank: Rank) -> str:
    return f"rank {rank.number}" if rank.number >= 0 else rank.name
