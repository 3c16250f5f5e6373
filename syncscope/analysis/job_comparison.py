"""Two jobs of the same ranks: each rank of the one beside the same rank of the other."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from syncscope.analysis.compare import compare
from syncscope.analysis.comparison import Comparison
from syncscope.analysis.evenness import HARDLY
from syncscope.analysis.fleet import INLINE
from syncscope.analysis.job import JobReport, job
from syncscope.analysis.job_verdict import steps_met
from syncscope.analysis.joint_replay import RankLine
from syncscope.analysis.one_job import NotOneJobError
from syncscope.analysis.owed import LateBy
from syncscope.analysis.rank import Rank, rank_of
from syncscope.errors import UserError
from syncscope.interpreters import safe_path
from syncscope.model.report import Report
from syncscope.model.trace import Trace

LOOK = 0.2  # seconds between two looks at how many ranks are done


class WaitedFor(NamedTuple):
    """How long each other rank waits for one in a step, ns on average, in both jobs, and its row in the second."""

    number: int
    before: float
    after: float
    row: RankLine


@dataclass(frozen=True, slots=True)
class JobComparison:
    """The ranks that both jobs have, by number, and those that only the first or only the second has; and either job as a
    whole, of these ranks, where they are the ranks of one."""

    ranks: dict[int, Comparison]
    only: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    jobs: tuple[JobReport, JobReport] | None = None

    @property
    def waited_for(self) -> WaitedFor | None:
        """The rank for which the others wait longer than in the first job, the most of a step; None where they wait for none
        by what matters, or nobody knows."""
        if self.jobs is None:
            return None
        before, after = map(_waits, self.jobs)
        number = max(after, key=lambda n: after[n] - before.get(n, 0.0), default=None)
        if number is None or after[number] - before.get(number, 0.0) < HARDLY * self.jobs[1].step:
            return None
        row = next(row for row in self.jobs[1].ranks if row.number == number)
        return WaitedFor(number, before.get(number, 0.0), after[number], row)

    @property
    def order(self) -> list[int]:
        """The ranks by how much longer their step got, the most first; those of which nobody knows are left out."""
        known = {number: ratio for number, found in self.ranks.items() if (ratio := _ratio(found)) is not None}
        return sorted(known, key=lambda number: -known[number])

    @property
    def median(self) -> int:
        """The rank in the middle of that order."""
        return self.order[len(self.order) // 2] if self.order else min(self.ranks)

    @property
    def worst(self) -> int:
        """The rank whose step got longer most, or shorter least."""
        return self.order[0] if self.order else min(self.ranks)


def _waits(job: JobReport) -> dict[int, float]:
    """How long each other rank waits for a rank in a step, ns on average, but for those whose recording begins late."""
    steps, others = max(1, steps_met(job.meets)), max(1, len(job.ranks) - 1)
    return {row.number: row.imposed / steps / others for row in job.ranks if row.cause is not LateBy.START}


def _ratio(found: Comparison) -> float | None:
    return found.after.step / found.before.step if found.before.step and found.after.step else None


def compare_jobs(
    read: Callable[[str], Trace],
    before: Mapping[int, str],
    after: Mapping[int, str],
    tick: Callable[[int, int], None],
) -> JobComparison:
    """Compare the recordings of each rank, by its number; `tick` hears how many are done, and of how many.

    Raises:
        UserError: the two have no rank in common, or one cannot be read.
    """
    common = sorted(before.keys() & after.keys())
    if not common:
        raise UserError("the two jobs have no rank in common", "name two recordings to compare these")
    pairs = [(before[number], after[number]) for number in common]
    found: dict[int, Comparison] = {}
    of_ranks: tuple[list[Rank], list[Rank]] = ([], [])
    with contextlib.ExitStack() as stack:
        if len(pairs) > INLINE:
            stack.enter_context(safe_path())
            executor = stack.enter_context(ProcessPoolExecutor(os.cpu_count()))
            waiting = [executor.submit(_one, read, *pair) for pair in pairs]
            tick(0, len(common))
            while (state := wait(waiting, LOOK, FIRST_EXCEPTION)).not_done:
                if any(one.exception() for one in state.done):
                    break
                tick(len(state.done), len(common))  # also before the first is done, which may take minutes
            tick(len(pairs), len(common))
            results = [one.result for one in waiting]
        else:
            results = [partial(_one, read, *pair, partial(tick, n, len(common))) for n, pair in enumerate(pairs)]
        for number, result in zip(common, results, strict=True):
            found[number], *both = result()
            for ranks, rank in zip(of_ranks, both, strict=True):
                ranks.append(rank)
            if len(pairs) <= INLINE:
                tick(len(found), len(common))
    only = tuple(sorted(before.keys() - after.keys())), tuple(sorted(after.keys() - before.keys()))
    try:
        return JobComparison(found, only, (job(of_ranks[0]), job(of_ranks[1])))
    except NotOneJobError:
        return JobComparison(found, only)


def _one(
    read: Callable[[str], Trace], before: str, after: str, halfway: Callable[[], None] = lambda: None
) -> tuple[Comparison, Rank, Rank]:
    """Two recordings side by side, without their events: of these there are too many to keep those of all ranks. And either
    as a rank of its job."""
    first = read(before)
    halfway()
    traces = first, read(after)
    halfway()
    found = compare(*traces, by_work=True)  # as those of the other ranks are, which they meet
    found = replace(found, before=_without_events(found.before), after=_without_events(found.after))
    return found, rank_of(traces[0], name=before), rank_of(traces[1], name=after)


def _without_events(report: Report) -> Report:
    return report if report.trace is None else replace(report, trace=report.trace.take(np.zeros(0, np.intp)))
