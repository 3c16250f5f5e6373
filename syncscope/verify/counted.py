"""How often versions of a program wait in a step: all of them over the same steps, whole rounds where these are not alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from syncscope.analysis.rounds import Rounds, whole_rounds
from syncscope.model.ops import Op
from syncscope.model.source import Place

Waits = Sequence[Mapping[tuple[Place, str], int]]
"""Of each step how often a line waits, by place and op."""


class Syncs(NamedTuple):
    """How often two versions wait in a step, and what is to be said of the steps."""

    before: float
    after: float
    words: str


def rounds_of(waits: Waits) -> Rounds:
    """The steps that are counted: not the first, before which the program begins."""
    return whole_rounds(waits, range(1, len(waits)))


def total(waits: Waits, steps: Sequence[int] | None = None) -> Counter[tuple[Place, str]]:
    """How often each line waits in these steps, by default in all."""
    found: Counter[tuple[Place, str]] = Counter()
    for step in range(len(waits)) if steps is None else steps:
        found.update(waits[step])
    return found


def a_step(waits: Waits, steps: Sequence[int]) -> float:
    """How often the host waits in one of these steps, on the mean. What waits only because the device lacks an operator counts
    nowhere: on CUDA it is no wait."""
    own = sum(count for (_, op), count in total(waits, steps).items() if op != Op.OCL_FALLBACK)
    return own / max(1, len(steps))


def of_same_steps(one: Waits, other: Waits) -> Syncs:
    """How often two versions wait in the steps that both have made, which are those that the first says."""
    both = min(len(one), len(other))
    rounds = rounds_of(one[:both])
    return Syncs(a_step(one, rounds.counted), a_step(other, rounds.counted), rounds.words)
