"""Two jobs of the same ranks: each rank of the one beside the same rank of the other."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from syncscope.analysis.compare import compare
from syncscope.analysis.comparison import Comparison
from syncscope.analysis.fleet import INLINE
from syncscope.errors import UserError
from syncscope.interpreters import safe_path
from syncscope.model.report import Report
from syncscope.model.trace import Trace


@dataclass(frozen=True, slots=True)
class JobComparison:
    """The ranks that both jobs have, by number, and those that only the first or only the second has."""

    ranks: dict[int, Comparison]
    only: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

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
    with contextlib.ExitStack() as stack:
        if len(pairs) > INLINE:
            stack.enter_context(safe_path())
            executor = stack.enter_context(ProcessPoolExecutor(os.cpu_count()))
            results = [executor.submit(_one, read, *pair).result for pair in pairs]
        else:
            results = [lambda pair=pair: _one(read, *pair) for pair in pairs]  # type: ignore[misc]  # a default is its type
        for number, result in zip(common, results, strict=True):
            found[number] = result()
            tick(len(found), len(common))
    return JobComparison(
        found, (tuple(sorted(before.keys() - after.keys())), tuple(sorted(after.keys() - before.keys())))
    )


def _one(read: Callable[[str], Trace], before: str, after: str) -> Comparison:
    """Two recordings side by side, without their events: of these there are too many to keep those of all ranks."""
    found = compare(read(before), read(after), by_work=True)  # as those of the other ranks are, which they meet
    return replace(found, before=_without_events(found.before), after=_without_events(found.after))


def _without_events(report: Report) -> Report:
    return report if report.trace is None else replace(report, trace=report.trace.take(np.zeros(0, np.intp)))
