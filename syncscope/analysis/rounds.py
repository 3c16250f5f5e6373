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
from itertools import pairwise
from typing import NamedTuple, TypeVar

Line = TypeVar("Line", bound=Hashable)
SLIGHT = 0.05  # of all waits that are counted, by which one rollout more or less is worth no word
MOST_CUT = 0.5  # of the steps, that may be left out where rounds are not all as long


class Rounds(NamedTuple):
    """The steps that are `counted`, by position: those of `number` whole rounds, each of `period` steps, where all are as long.

    `number` is 0 where no whole round is among them, and where steps are alike: all are counted. `share` of their waits are
    those by which the step that waits most often is above that which waits least.
    """

    counted: range
    number: int = 0
    period: int | None = None
    share: float = 0.0

    @property
    def matters(self) -> bool:
        """Whether it makes a difference to what is counted that steps do not wait alike."""
        return self.share > SLIGHT

    @property
    def words(self) -> str:
        """What is to be said of it: "" where it makes no difference."""
        steps = len(self.counted)
        if not self.matters:
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
    known = waits[min(1, candidates.start) :]  # before the first a program sets up, if it is not all there is
    unlike = [line for line in set().union(*known) if len({step.get(line, 0) for step in known}) > 1]
    of_step = [sum(step.get(line, 0) for line in unlike) for step in waits]
    later = of_step[-len(known) :] if known else []
    least, most = min(later, default=0), max(later, default=0)
    begins = [2 * waited > least + most for waited in of_step]
    at = [step for step, does in enumerate(begins) if does]
    own = {of_step[step] for step in candidates}
    if least == most or not (_come_back(at) or (len(at) == 1 and len(own) > 1)):
        return Rounds(candidates)
    counted = sum(sum(waits[step].values()) for step in candidates)
    share = (most - least) / counted if counted else 1.0
    period = next((other - at[0] for other in at[1:] if _repeats(begins, other - at[0])), None)
    if period is not None and period <= len(candidates):
        number = len(candidates) // period
        return Rounds(candidates[-number * period :], number, period, share)
    # behind one that waits often up to the last such
    inside = [step for step in at if candidates.start - 1 <= step < candidates.stop]
    if period is None and len(inside) > 1 and inside[-1] - inside[0] >= MOST_CUT * len(candidates):
        return Rounds(range(inside[0] + 1, inside[-1] + 1), len(inside) - 1, None, share)
    return Rounds(candidates, 0, period, share)


def _come_back(at: Sequence[int]) -> bool:
    """Whether steps that wait often are apart from one another: those behind others that warm up are not."""
    return any(later - earlier > 1 for earlier, later in pairwise(at))


def _repeats(begins: Sequence[bool], period: int) -> bool:
    """Whether that is so of all steps that are known; a round of several beginnings is to be seen twice."""
    alone = not any(begins[begins.index(True) + 1 :][: period - 1])
    twice = len(begins) >= 2 * period
    return (alone or twice) and all(one == other for one, other in zip(begins, begins[period:], strict=False))
