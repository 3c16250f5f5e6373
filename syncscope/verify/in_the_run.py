"""The fixes of a program tried inside of its own run, which then goes on as written: `syncscope run --try`.

Once the run is recorded, the loop in which it makes its steps is led through rehearsals of the iterations to come: which, is
`Tried`'s to say. What these print and write goes aside.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from statistics import median
from time import monotonic_ns
from typing import Any

from syncscope.turns.leading import Loops
from syncscope.turns.selector import Selector
from syncscope.verify import kept, overlay
from syncscope.verify.offers import Offers
from syncscope.verify.own_files import own_files
from syncscope.verify.periods import Periods
from syncscope.verify.rehearsal import Rehearsing
from syncscope.verify.request import Program
from syncscope.verify.results import IN_THE_RUN, Verification
from syncscope.verify.tried import Tried
from syncscope.verify.trying import COMPILED, Trying, is_compiled

MOST = 4  # times that it is begun, where its loop comes to an end
WARM = 8  # steps of the program at least before anything is tried
FEWEST_STEPS = 24  # of a program, in which a short recording and some that are tried find room
SHORT = 12  # steps of a recording that still tells what to try
ELSEWHERE = "its steps are made in no loop of its own files, but in a library's; `syncscope verify` tries it"


class InTheRun:
    """One trial, from before the program's first import to its end. `found` is what is known.

    `may_begin` says whether the program may be kept now, `pause` is told whether its steps are none of its own for the time
    being, `tell` prints a line.
    """

    def __init__(
        self,
        program: Program,
        budget: float,
        unsafe: bool,
        may_begin: Callable[[], bool],
        pause: Callable[[bool], None],
        tell: Callable[[str], None],
    ) -> None:
        self.found = Verification(str(program), way=IN_THE_RUN)
        self._program, self._budget = program, budget
        self._may_begin, self._tell = may_begin, tell
        script = [os.path.realpath(program.target)] if not program.module else []
        self._own = own_files(program)  # all of them, or None where others may be found as the program runs
        self._offers = Offers(self._own or script, "" if unsafe else "--unsafe-fixes")
        self._trying = Trying(self.found, self._offers, pause, tell)
        self._optimizers: dict[int, Any] = {}
        self._loops, self._selector = Loops(kept.keep, kept.drawing), Selector()
        self._selector.follow(self._loops)
        self._periods, self._ends = Periods(), [monotonic_ns()]
        self._process = os.getpid()
        self._is_done = False
        self._begun = 0
        self._too_late = ""  # why it was given up, where another loop may do
        self._from = WARM  # steps from which on it may begin

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Inside, the program's files are woven as they are imported, and its steps are heard; unless there is nothing to try,
        which is said now, and not after a run of an hour."""
        from syncscope.tracers.hooks import listening
        from syncscope.tracers.hooks.listeners import Listener
        from syncscope.tracers.hooks.patches import beats

        def stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
            self._optimizers.setdefault(id(optimizer), optimizer)

        def hear(module: Any) -> None:
            beats.later(module.register_optimizer_step_post_hook(stepped).remove)

        if self._own is not None:
            self._offers.foresee(self._own)
            if not self._offers.tried:
                self._is_done = True
                self._trying.leave(self._offers.why_none())
                yield
                return
        self._selector.install()
        overlay.put({}, self._offers.tree)
        with contextlib.ExitStack() as stack:
            stack.callback(beats.when_imported("torch.optim.optimizer", hear))
            stack.enter_context(listening(Listener(step=self._step)))
            yield

    def finish(self) -> Verification:
        """What is known, at the end of the program."""
        if not self._is_done:
            self._over(self._why_not_begun(len(self._ends) - 1))
        self._trying.finish()
        return self.found

    def _why_not_begun(self, steps: int) -> str:
        """What kept it from being tried up to the end of a program of so many steps, and what helps."""
        if not steps:
            return "no step was seen"
        ended = f"the program ended after {steps} steps"
        why = f"{ended}: {self._too_late}" if self._too_late else f"{ended}, before its recording was over"
        if steps < FEWEST_STEPS:
            return f"{why}; it needs {FEWEST_STEPS} at least"
        return f"{why}; `--active {min(SHORT, steps // 3)}` records fewer, and leaves more of them to try in"

    def _step(self) -> None:
        if self._is_done or os.getpid() != self._process:
            return
        if self._trying.tried is not None:
            self._trying.tried.step()
            return
        if self._loops.is_led:
            return
        self._ends.append(monotonic_ns())
        self._periods.step(self._selector.entered)
        if len(self._ends) > self._from and self._may_begin():
            self._lead()

    def _lead(self) -> None:
        """Leads the loop of this step, from its next iteration on."""
        head = self._loops.innermost(sys._getframe(1))
        if not self._offers.tried:
            self._over(self._offers.why_none())
        elif is_compiled():
            self._over(COMPILED)
        elif head is None:
            self._over(ELSEWHERE)
        else:
            last = [b - a for a, b in zip(self._ends[-WARM:], self._ends[-WARM + 1 :], strict=False)]
            tried = Tried(self._program, self._offers, self._optimizers, self.found, self._budget)
            tried.plan_steps(median(last), self._periods)
            rehearsing = Rehearsing(
                self._selector, self._loops, tried.rehearsals(), lambda: self._begin(tried), self._over
            )
            self._loops.lead(head, rehearsing)

    def _begin(self, tried: Tried) -> None:
        """The top of the loop is reached, and the first rehearsal begins."""
        if self._begun:
            self._tell("its loop came to an end: trying in the next one")
        steps = f"in the next {tried.steps} steps, which are made again and again for at most {self._budget:.0f} s"
        self._trying.begin(tried, self._optimizers, steps)

    def _over(self, why: str, again: bool = False) -> None:
        """Nothing more is tried, and the program is as it was; `why` not, if it is not because all is known. Unless it may be
        tried `again`."""
        tried = self._trying.end()
        self._begun += 1
        if again and self._begun < MOST:
            self._too_late = why
            self._from = len(self._ends) + WARM
            return
        self._is_done = True
        self._trying.conclude(tried, why)
