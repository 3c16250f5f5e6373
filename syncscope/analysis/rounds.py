"""Whole rounds of a loop whose steps are not alike: a rollout before every fourth of them, a log in every tenth.

What waits in a step on the mean depends on how many rollouts the counted steps happen to hold. So of these as many are
counted as make whole rounds:

```text
waits of a step    90   8   8   8   90   8   8   8   90   8   8
counted                 |---------------|---------------|
```
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

Line = TypeVar("Line", bound=Hashable)
MOST_CUT = 0.5  # of the steps, that may be left out where rounds are not all as long


class Rounds(NamedTuple):
    """The steps that are `counted`, by position: those of `number` whole rounds, each of `period` steps, where all are as long.

    `least` and `most` are the waits of a step, of lines that do not wait in each as often; equal where steps are alike.
    `number` is 0 where no whole round is among them: all are counted.
    """

    counted: range
    number: int = 0
    period: int | None = None
    least: int = 0
    most: int = 0

    @property
    def unlike(self) -> bool:
        """Whether steps are not alike."""
        return self.least < self.most

    @property
    def words(self) -> str:
        """What is to be said of it: "" where steps are alike."""
        steps = len(self.counted)
        if not self.unlike:
            return ""
        if not self.number:
            return f"steps do not wait alike, and no whole round of them is in the {steps} that are counted: more steps tell"
        if self.period is None:
            return f"steps do not wait alike: counted are {steps}, from behind one that waits often up to the last such"
        counted = "is one whole round" if self.number == 1 else f"are {self.number} whole rounds"
        return f"steps do not wait alike: counted {counted} of {self.period} steps"


def whole_rounds(waits: Sequence[Mapping[Line, int]], candidates: range) -> Rounds:
    """Which of the candidates are counted. `waits` says of every step that is known how often each line waits in it; steps that
    are no candidates, as the first, tell where rounds begin.
    """
    lines = {line for step in candidates for line in waits[step]}
    unlike = [line for line in lines if len({waits[step].get(line, 0) for step in candidates}) > 1]
    of_step = [sum(step.get(line, 0) for line in unlike) for step in waits]
    own = [of_step[step] for step in candidates]
    if not own or min(own) == max(own):
        return Rounds(candidates)
    least, most = min(own), max(own)
    begins = [2 * waited > least + most for waited in of_step]
    at = [step for step, does in enumerate(begins) if does]
    period = next((other - at[0] for other in at[1:] if _repeats(begins, other - at[0])), None)
    if period is not None and period <= len(candidates):
        number = len(candidates) // period
        return Rounds(candidates[-number * period :], number, period, least, most)
    # behind one that waits often up to the last such
    inside = [step for step in at if candidates.start - 1 <= step < candidates.stop]
    if period is None and len(inside) > 1 and inside[-1] - inside[0] >= MOST_CUT * len(candidates):
        return Rounds(range(inside[0] + 1, inside[-1] + 1), len(inside) - 1, None, least, most)
    return Rounds(candidates, 0, period, least, most)


def _repeats(begins: Sequence[bool], period: int) -> bool:
    """Whether that is so of all steps that are known; a round of several beginnings is to be seen twice."""
    alone = not any(begins[begins.index(True) + 1 :][: period - 1])
    twice = len(begins) >= 2 * period
    return (alone or twice) and all(one == other for one, other in zip(begins, begins[period:], strict=False))
