"""Ranks whose recordings begin in other steps: what each has whole, and which step the end of one is of that it has in part.

```text
rank 0   |==== step 4 ====|==== step 5 ====|==== step 6 ====|
rank 1             here ->|..4|==== step 5 ====|==== step 6 ====|
```

A recording that begins in the middle of a step marks none but those behind it. What it has before is the end of the one before,
as other ranks show, which have that step whole. Ranks are held side by side by what both have whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from syncscope.analysis.meeting_key import OUTSIDE
from syncscope.analysis.rank import Rank


def in_steps(ranks: Sequence[Rank]) -> list[Rank]:
    """The ranks, where what one did before its first step has the number of the step before, if another rank has that."""
    known = {step.index for rank in ranks for step in rank.graph.steps}
    return [_ends_of(rank, first - 1) if (first := _first(rank)) - 1 in known else rank for rank in ranks]


def whole_steps(ranks: Sequence[Rank]) -> list[frozenset[int]]:
    """The steps that each rank has whole; with what lies outside of steps, unless it begins later than
    others, or has that step in part."""
    first = min(map(_first, ranks), default=0)
    return [
        frozenset(step.index for step in rank.graph.steps) | ({OUTSIDE} if _first(rank) == first else set())
        for rank in ranks
    ]


def _first(rank: Rank) -> int:
    return min((step.index for step in rank.graph.steps), default=0)


def _ends_of(rank: Rank, step: int) -> Rank:
    """The rank, where what is outside of steps is of this one."""
    return replace(
        rank,
        collectives=tuple(
            replace(one, key=one.key._replace(step=step)) if one.key.step == OUTSIDE else one
            for one in rank.collectives
        ),
    )
