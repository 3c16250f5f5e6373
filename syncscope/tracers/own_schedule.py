"""Which steps are recorded where nobody has said it: those after the program's own first ones, and not all of them.

```text
opening     recorded, and kept only if the program ends before enough of what follows
 before     not recorded: what a step takes without
  recorded  until they tell what a step takes, or a few seconds are over
   after    not recorded, once more
    over    only counted
```

The first steps of a program are others: libraries load, kernels are built, caches fill. They are let pass until a few that
follow one another are alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from statistics import median, quantiles

ALIKE = 1.25  # so many times the shortest may the longest of a few steps be, for them to be alike
SECOND = 1_000_000_000


class Phase(IntEnum):
    """What is done with a step."""

    OPENING = 0
    BEFORE = 1
    RECORDED = 2
    AFTER = 3
    OVER = 4


FEWEST = {Phase.OPENING: 5, Phase.BEFORE: 5, Phase.RECORDED: 20, Phase.AFTER: 10}  # steps, unless they are long
SHORTEST = {Phase.OPENING: 0, Phase.BEFORE: SECOND // 33, Phase.RECORDED: SECOND // 4, Phase.AFTER: SECOND // 10}  # ns
LONGEST = {Phase.OPENING: 10 * SECOND, Phase.BEFORE: SECOND, Phase.RECORDED: 8 * SECOND, Phase.AFTER: SECOND}  # ns
LEAST = {Phase.OPENING: 3, Phase.BEFORE: 3, Phase.RECORDED: 8, Phase.AFTER: 3}  # steps, however long they are
MOST = {Phase.OPENING: 60, Phase.BEFORE: 100, Phase.RECORDED: 200, Phase.AFTER: 100}  # steps, however short they are
FEW = 4  # the steps that are to be alike
# of a step: half the 95 % interval of the median recorded one, from which on more of them tell nothing new
NARROW = 0.03
ROOM = 24  # steps of a program that as a rule hold all of this
ENOUGH = 6  # recorded steps from which on the opening is not needed


class OwnSchedule:
    """Is told of each step that ends, and says what is done with the next."""

    def __init__(self) -> None:
        self.phase = Phase.OPENING
        self.steps = dict.fromkeys(Phase, 0)
        self._lengths: list[int] = []  # ns of the steps since kernels were built
        self._recorded: list[int] = []  # ns of the steps that are
        self._spent = 0  # ns of this phase
        self._built = 0

    def step(self, ns: int, built: int) -> Phase:
        """A step of `ns` has ended, by when so many kernels had been `built` in all."""
        self.steps[self.phase] += 1
        self._spent += ns
        self._lengths = [*self._lengths[1 - FEW :], ns] if built == self._built else []
        self._built = built
        if self.phase is Phase.RECORDED:
            self._recorded.append(ns)
        if self.phase is not Phase.OVER and self._done():
            self.phase, self._spent = Phase(self.phase + 1), 0
        return self.phase

    def _done(self) -> bool:
        phase, count, spent = self.phase, self.steps[self.phase], self._spent
        if count >= MOST[phase] or (spent >= LONGEST[phase] and count >= LEAST[phase]):
            return True
        if phase is Phase.OPENING:
            return count >= FEWEST[phase] and alike(self._lengths)
        enough = count >= FEWEST[phase] and spent >= SHORTEST[phase]
        return enough and (phase is not Phase.RECORDED or open_part(self._recorded) <= NARROW)

    def words(self, opening: bool) -> str:
        """Which steps were recorded, and why those, "" where all were; `opening` says that it is the opening that was kept."""
        count = sum(self.steps.values())
        if self.steps[Phase.OPENING] == count:
            return ""
        first = self.steps[Phase.OPENING] + self.steps[Phase.BEFORE]
        last = first + self.steps[Phase.RECORDED]
        if opening:
            rest = f"too few follow to record those instead, and a program of {self._needed(count)} or more has enough"
            return f"the first {self.steps[Phase.OPENING]} of {count} steps are recorded: {rest}"
        return (
            f"steps {first} to {last - 1} of {count} are recorded (the first is 0): "
            f"the first {self.steps[Phase.OPENING]} warmed up, "
            f"{self.steps[Phase.BEFORE] + self.steps[Phase.AFTER]} more were timed without a recording, to know what it weighs"
        )

    def _needed(self, count: int) -> int:
        """How many steps a program has of which those behind the opening are recorded; this one has `count`, too few."""
        usual = median(self._lengths or [SHORTEST[Phase.BEFORE]])
        before = min(MOST[Phase.BEFORE], max(FEWEST[Phase.BEFORE], math.ceil(SHORTEST[Phase.BEFORE] / max(usual, 1))))
        return max(ROOM, count + 1, self.steps[Phase.OPENING] + before + ENOUGH)


def open_part(lengths: Sequence[int]) -> float:
    """Half the 95 % interval of the median of some steps, as a part of it, by their quartiles.

    Source: McGill, Tukey, Larsen, "Variations of box plots", The American Statistician 32, 1978: 1.57 times their distance by
    the root of how many there are.
    """
    low, middle, high = quantiles(lengths, n=4)
    return float(1.57 * (high - low) / len(lengths) ** 0.5 / middle) if middle > 0 else 0.0


def alike(lengths: Sequence[int]) -> bool:
    """Whether a few steps are: none is much longer than the median, and none much shorter."""
    if len(lengths) < FEW:
        return False
    middle = median(lengths)
    return max(lengths) <= ALIKE * middle and min(lengths) * ALIKE >= middle
