"""The time that a verification may take: how much of it is spent, on what, and how much is enough."""

from __future__ import annotations

import math
import time

from syncscope.verify import timing
from syncscope.verify.failing import STEP
from syncscope.verify.results import MOST_TIMES
from syncscope.verify.runs import Runs
from syncscope.verify.spent import TURNS

ENOUGH = 5  # times what the first run took: one that compares, one in which versions take turns, some turns, and a rest


class Budget:
    """What is spent by some runs of the time that the user gave them."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self._turning = 0.0
        self._named = 0  # minutes that were named already
        self.least = 3 + 3 * timing.FEWEST  # runs by which something can be decided

    @property
    def likely(self) -> int | None:
        """Minutes that were said to be enough, likely; None where nobody could say."""
        return self._named or None

    def spent(self) -> float:
        """The part of the budget."""
        return 1 - self.runs.processes.left() / self.runs.settings.budget

    def begin_turns(self) -> None:
        """Versions take turns from now on."""
        self._turning = self.spent()

    def part(self, of: float) -> float:
        """Of the budget, what is spent once so much is of what was left as turns began."""
        return self._turning + of * (1 - self._turning)

    def shortage(self) -> str:
        """What the budget went to, and how much is enough for the `least` number of runs."""
        found, runs = self.runs.found, max(1, self.runs.processes.count)
        found.seconds = time.monotonic() - self.runs.began
        found.importing, found.starting = self.runs.processes.importing, self.runs.processes.starting
        spent = f"imports took {found.importing:.0f} s"
        if not found.steps:
            last = f". It printed last: {printed}" if (printed := self.runs.processes.printed) else ""
            if not self.runs.processes.stepped:
                return f"{spent}, and the first run had not ended a single step by then: {STEP}{last}"
            return f"{spent}, and the first run had not made all its steps by then: --steps makes fewer{last}"
        if self.runs.in_one and found.ratio is not None and found.ratio.turns >= timing.FEWEST:
            turns = found.spent.get(TURNS, 0.0)
            return f"{turns:.0f} s of it went to turns; {self._more()}"
        each, first = (found.seconds - found.importing) / runs, found.starting / runs
        if runs >= self.least:
            return f"{spent} and a run {each:.1f} s; {self._more()}"
        return (
            f"{spent} and a run {each:.1f} s, {first:.1f} s of it up to the end of its first step. {self.least} runs are the "
            f"least that decides: --budget {self.enough()}m may hold them"
        )

    def _more(self) -> str:
        """The budget that decides, by the turns there were."""
        found, budget = self.runs.found, self.runs.settings.budget
        made = found.ratio.turns if found.ratio is not None else 0
        needed = timing.turns_that_decide(found.ratio, self.runs.in_one)
        if made >= timing.FEWEST and found.lacks_turns_of_the_same:
            return (
                f"four times the time, `--budget {self._four_times()}m`, bounds how far equal versions differ, likely"
            )
        if found.is_in_the_noise and made >= timing.FEWEST:
            needed = made * found.times_the_steps
        if made >= timing.FEWEST and MOST_TIMES * made < needed and (found.is_in_the_noise or needed < math.inf):
            self._named = 0
            return "no larger budget that anybody waits for decides, if steps vary as these did; a quieter machine may"
        if made < timing.FEWEST or not made < needed < math.inf:
            return f"four times the time, `--budget {self._four_times()}m`, makes the interval about half as wide"
        seconds = budget + (needed - made) * found.spent.get(TURNS, budget) / made
        return (
            f"some {needed:.0f} turns in place of {made} decide, if they vary as these did: "
            f"`--budget {self.enough(seconds)}m`; fewer do where nothing else runs"
        )

    def _four_times(self) -> int:
        """The minutes of four times the budget, named from now on."""
        self._named = max(self._named, math.ceil(4 * self.runs.settings.budget / 60))
        return self._named

    def forewarning(self) -> str:
        """That what is left after the first run will hardly decide, and what would; "" where it may."""
        left, first = self.runs.processes.left(), time.monotonic() - self.runs.began - self.runs.processes.importing
        if left >= ENOUGH * first:
            return ""
        enough = self.enough(time.monotonic() - self.runs.began + ENOUGH * first)
        return (
            f"the first run took {first:.0f} s, and {max(0.0, left):.0f} s are left: too few, likely, to decide whether a "
            f"step is shorter. --budget {enough}m may do; Ctrl-C ends this and shows what is known"
        )

    def forewarning_of_turns(self) -> str:
        """The same where each version is to have a process of its own, as turns begin."""
        holds, needed = max(0, int(self.runs_left(1.0))), 3 * timing.FEWEST
        if holds >= needed:
            return ""
        spent = time.monotonic() - self.runs.began
        enough = self.enough(spent + needed * spent / max(1, self.runs.processes.count))
        return (
            f"each version has a process of its own here: {needed} runs more are the least that decides, and what is left "
            f"holds about {holds}. --budget {enough}m holds these; where steps vary it takes more, which is said at the end"
        )

    def enough(self, seconds: float = 0.0) -> int:
        """The budget that may hold the least number of runs, and these seconds, in minutes: never less than was said before,
        and more than was given."""
        given = math.floor(self.runs.settings.budget / 60)
        self._named = max(self._named, self.minutes(self.least), math.ceil(seconds / 60), given + 1)
        return self._named

    def minutes(self, runs: int) -> int:
        """The budget that may hold so many runs."""
        importing = self.runs.processes.importing
        each = (time.monotonic() - self.runs.began - importing) / max(1, self.runs.processes.count)
        return math.ceil((importing + runs * each) / 60)

    def runs_left(self, part: float) -> float:
        """How many more runs fit into this part of the budget, as long as they were so far."""
        each = (time.monotonic() - self.runs.began) / max(1, self.runs.processes.count)
        return (part - self.spent()) * self.runs.settings.budget / each
