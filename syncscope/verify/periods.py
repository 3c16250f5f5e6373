"""How often passages of a program that differ are begun, in steps: a rollout once in sixteen, an evaluation once an epoch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

EARLY = 2  # steps in which a passage may be begun that is not begun again


class Periods:
    """Of passages, by how often each has been begun by the end of a step."""

    def __init__(self) -> None:
        self._steps = 0
        self._counts: dict[int, int] = {}
        self._begun: dict[int, list[int]] = {}  # the steps in which a passage was

    def step(self, entered: Mapping[tuple[int, int], int]) -> None:
        """A step has ended, and passages (by themselves and version) have been begun so often."""
        self._steps += 1
        for (passage, version), count in entered.items():
            if version == 0 and count != self._counts.get(passage):
                self._counts[passage] = count
                self._begun.setdefault(passage, []).append(self._steps)

    def of(self, passage: int) -> int | None:
        """The most steps from one time that it is begun to the next; None where it has not been begun twice, or early only."""
        steps = self._begun.get(passage, [])
        if len(steps) < 2 or steps[-1] <= EARLY:
            return None
        return max(later - earlier for earlier, later in pairwise(steps))

    def known(self, passages: Iterable[int]) -> bool:
        """Whether it is known of all of these."""
        return all(self.of(passage) is not None for passage in passages)
