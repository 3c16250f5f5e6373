"""Whether the ranks of a job hold each other up by chance, or one of them more than that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.collectives import Collective
from syncscope.analysis.owed import LateBy

if TYPE_CHECKING:
    from syncscope.analysis.joint_replay import RankLine
    from syncscope.analysis.rank import Rank

HARDLY = 0.01  # of a step that the others wait on average, below which nobody minds
CHANCE = 0.05  # a rank is slower than the others where ranks that are alike would be so unequal more seldom than that
DRAWS = 400
MOST = 20_000_000  # numbers drawn in all
SPENT: dict[LateBy, Callable[[Collective], float]] = {
    LateBy.HOST: lambda one: one.hosting,
    LateBy.LAUNCHES: lambda one: one.launching,
    LateBy.DEVICE: lambda one: sum(ns for _, ns in one.device),
}
"""What a rank spent itself on what makes it late. What it waits in syncs is others' time, too."""


def waits_of_a_step(imposed: float, ranks: int, steps: int, step: float) -> float:
    """How long each other rank waits for one, as a part of a step on average, where they wait so long in all."""
    return imposed / (max(1, steps) * max(1, ranks - 1) * step) if step else 0.0


def are_even(
    rows: Sequence[RankLine], ranks: Sequence[Rank], counted: Collection[int], steps: int, step: float
) -> bool | None:
    """Whether even that rank which the others wait for most is slower by no more than chance has it, or they wait for hardly
    any of a step; None where that cannot be told, as from few steps.

    A rank that fell behind once stays behind, so how often it comes last tells little. What it spends itself in a step is
    asked: of ranks that are alike, any may be the slow one in each. So whose times are whose is drawn anew in every step, and
    it is seen how often any rank spends as much in all.
    """
    slow = max(rows, key=lambda row: row.imposed)
    if len(rows) < 2 or not counted:
        return None
    if not slow.imposed or (
        slow.cause is not LateBy.START and waits_of_a_step(slow.imposed, len(rows), steps, step) <= HARDLY
    ):
        return True
    if slow.cause not in SPENT or len(ranks) ** (1 - len(counted)) > CHANCE:  # one rank is the last that often in all
        return None
    own = spent_by_step(ranks, counted, SPENT[slow.cause])
    longest = own[:, next(n for n, rank in enumerate(ranks) if rank.number == slow.number)].sum()
    random = np.random.default_rng(0)
    draws = int(min(DRAWS, max(1 / CHANCE, MOST / own.size)))
    as_long = sum(float(random.permuted(own, axis=1).sum(axis=0).max()) >= longest * (1 - 1e-9) for _ in range(draws))
    return bool(as_long > CHANCE * draws)


def spent_by_step(
    ranks: Sequence[Rank], counted: Collection[int], amount: Callable[[Collective], float]
) -> NDArray[np.float64]:
    """How much each rank (a column) spent before the collectives of each of these steps (a row)."""
    row = {step: number for number, step in enumerate(sorted(counted))}
    found = np.zeros((len(row), len(ranks)))
    for column, rank in enumerate(ranks):
        for one in rank.collectives:
            if (number := row.get(one.key.step)) is not None:
                found[number, column] += amount(one)
    return found
