"""The fixes of a running program tried because it asks: `trace.try_fixes()`, with what makes a step, or with its own loop.

Nothing was woven when its files were imported. So the functions that are alive get other code, in which all versions are, as
long as steps are rehearsed. What is rehearsed ends with the rehearsals: the program goes on behind its question.
"""

from __future__ import annotations

import ast
import builtins
import gc
import itertools
import os
import sys
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from statistics import median
from time import monotonic_ns
from types import FrameType
from typing import Any

from syncscope.errors import UserError
from syncscope.tracers.places import USER, kind_of_file
from syncscope.turns.leading import NEXT, LeftError, Loops
from syncscope.turns.selector import NAME, Selector
from syncscope.verify import kept
from syncscope.verify.callers_loop import WANTED, CallersLoop
from syncscope.verify.offers import Offers
from syncscope.verify.periods import Periods
from syncscope.verify.rehearsal import Rehearsal, Rehearsals, Rehearsing
from syncscope.verify.request import Program
from syncscope.verify.results import IN_THE_RUN, Verification
from syncscope.verify.snapshot import Snapshot
from syncscope.verify.swapped import Swapped, passages_in
from syncscope.verify.tried import AS_WRITTEN, Tried
from syncscope.verify.trying import COMPILED, Trying, is_compiled

WARM = 8  # steps as written before any is compared
CALLS = -2  # the site of the loop that calls a function again and again
UNCHANGED = "what it changes is reached through no function that is alive: `syncscope run --try` tries it"
NO_FILE = "what was typed in (a notebook's cells, a prompt) is left as it is: put it into a .py file, and import that"
selector = Selector()  # what a program has kept of woven code goes on asking this one


class AskedFor:
    """One trial. `found` is what is known.

    `step` makes one step; without it the loop is run in which `frame` stands, or behind which. `paths` are files that may have
    lines that wait.
    """

    def __init__(
        self,
        step: Callable[[], object] | None,
        frame: FrameType,
        paths: Collection[str],
        budget: float,
        unsafe: bool,
        tell: Callable[[str], None],
    ) -> None:
        self.found = Verification(sys.argv[0] or "-c", way=IN_THE_RUN)
        self._budget, self._tell = budget, tell
        self._paths = [path for path in dict.fromkeys(map(os.path.realpath, paths)) if kind_of_file(path) == USER]
        if any(not os.path.isfile(path) for path in self._paths):
            self.found.notes.append(NO_FILE)
        self._offers = Offers(self._paths, "" if unsafe else "unsafe_fixes=True", leads=False)
        self._trying = Trying(self.found, self._offers, lambda on: None, tell)
        self._swapped, self._periods = Swapped(), Periods()
        self._loops = Loops(kept.keep, kept.drawing)
        self._optimizers: dict[int, Any] = {}
        self._under_way = False  # an iteration
        self._is_over = False
        self._trees = {path: tree for path in self._paths if (tree := self._offers.tree(path)) is not None}
        loop = self._loop_of(frame) if step is None else None
        self._swap()
        if loop is not None:
            self._run, self._site, code = loop.made(self._trees)
            self._reach(passages_in(code))
        elif step is not None:
            self._run, self._site = self._calling(step), CALLS
            self._reach(())

    def _calling(self, step: Callable[[], object]) -> Callable[[], object]:
        def run() -> None:
            for _ in self._loops.over(itertools.repeat(None), CALLS):
                try:
                    step()
                except BaseException as error:
                    if not self.failed(error):
                        raise

        return run

    def _loop_of(self, frame: FrameType) -> CallersLoop:
        path = os.path.realpath(frame.f_code.co_filename)
        try:
            tree = ast.parse(Path(path).read_bytes())
        except (OSError, SyntaxError, ValueError):
            raise UserError("trace.try_fixes() cannot read the loop that makes the steps", WANTED) from None
        return CallersLoop(frame, path, tree, self._offers.names)

    def _swap(self) -> None:
        self._swapped.put({path: (Path(path).read_bytes(), tree) for path, tree in self._trees.items()})
        for path in sorted(self._swapped.stale):
            self.found.notes.append(f"{os.path.relpath(path)} holds other text than what runs, which is left as it is")

    def _reach(self, passages: Iterable[int]) -> None:
        """What is in none of these passages, nor in functions that are alive, is not tried."""
        reached = self._swapped.passages.union(passages)
        for offer in self._offers.tried:
            if not offer.passages & reached:
                offer.number, offer.fix.why = 0, UNCHANGED

    def make(self) -> Verification:
        """Tries; in the end all is as it was."""
        try:
            if getattr(builtins, NAME, selector) is not selector:
                self._trying.conclude(None, "`syncscope run --try` tries them in this run")
            elif (ranks := _ranks()) > 1:
                self._trying.conclude(
                    None, f"this is one of {ranks} ranks, which wait for one another: try it in a run of one"
                )
            elif not self._offers.tried:
                self._trying.conclude(None, self._offers.why_none())
            elif is_compiled():
                self._trying.conclude(None, COMPILED)
            else:
                self._rehearse()
        finally:
            self._swapped.put_back()
        self._trying.finish()
        return self.found

    def _rehearse(self) -> None:
        optimizer = sys.modules["torch"].optim.Optimizer
        self._optimizers = {id(one): one for one in gc.get_objects() if issubclass(type(one), optimizer)}
        selector.forget()
        selector.follow(self._loops)
        selector.install()
        before = Snapshot()  # of all but what the loop is yet to begin
        self._tried = Tried(
            Program(self.found.program), self._offers, self._optimizers, self.found, self._budget, '`budget="{}"`'
        )
        self._rehearsing = Rehearsing(
            selector, self._loops, self._wanted(), self._begin, self._end, lambda: before.look()
        )
        self._loops.lead((NEXT, self._site), self)
        try:
            self._run()
        except LeftError:
            if not self._is_over:
                raise
        if not self._is_over:
            before.put_back()
            self._trying.conclude(None, "the loop that makes its steps makes none when it is begun once more")

    def _wanted(self) -> Rehearsals:
        """Some steps as written, which tell how long they are, and then what is to be known."""
        ends: list[int] = []

        def after_each() -> bool:
            ends.append(monotonic_ns())
            self._periods.step(selector.entered)
            return len(ends) > WARM

        yield Rehearsal(AS_WRITTEN, after_each=after_each)
        self._tried.plan_steps(median(b - a for a, b in itertools.pairwise(ends)), self._periods)
        yield from self._tried.rehearsals()

    def _begin(self) -> None:
        self._trying.begin(
            self._tried, self._optimizers, f"in steps that are put back, for at most {self._budget:.0f} s"
        )

    def _end(self, why: str, again: bool) -> None:
        self._is_over = True
        self._trying.conclude(self._trying.end(), why)

    # as a leader of the loop

    def top(self) -> None:
        """An iteration begins, and the one before was a step."""
        if self._under_way:
            self._tried.step()
        self._rehearsing.top()
        if self._is_over:
            raise LeftError
        self._under_way = True

    def is_over(self, made: bool) -> bool:
        """The loop has come to its end."""
        self._under_way = False
        if made:
            self._tried.step()
        return self._rehearsing.is_over(made)

    def failed(self, error: BaseException) -> bool:
        """This was raised in an iteration."""
        self._under_way = False
        return self._rehearsing.failed(error)


def _ranks() -> int:
    """Of a job."""
    distributed: Any = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not (distributed.is_available() and distributed.is_initialized()):
        return 1
    return int(distributed.get_world_size())
