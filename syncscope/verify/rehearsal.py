"""The iterations to come of a loop, made by one version after another and each time put back: then the run goes on as written.

    ... iteration │ snapshot ─ iterations ─ put back ─ iterations ─ put back ... │ the same iterations, as written ...
                  │            as written              as another version        │

Put back is the loop's top: no function that it calls is under way there, and no expression is half evaluated. What a version
raises, and what would leave the loop, ends its iterations, and is put back as well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from syncscope.turns.leading import LeftError, Loops
from syncscope.turns.selector import Selector
from syncscope.verify.held_back import HeldBack
from syncscope.verify.snapshot import Snapshot

FEWEST = 4  # iterations of which something can be said


def nothing() -> None:
    """Is done."""


@dataclass
class Rehearsal:
    """Iterations of one version: what is done before the first, after each, and after the last."""

    version: int
    before: Callable[[], None] = nothing
    after_each: Callable[[], bool | None] = nothing  # whether that was the last
    after: Callable[[], None] = nothing
    made: int = 0  # iterations
    error: str = ""  # what ended it
    entered: dict[int, int] = field(default_factory=dict)  # how often each passage was begun


Rehearsals = Generator[Rehearsal, Rehearsal, None]


class Rehearsing:
    """Leads a loop through rehearsals, as long as `wanted` has some. Each is sent back when made. Where the loop ends
    within one, none to come is longer.

    `begun` is called at the loop's top before anything is, and in the end `ended`, with
    what kept it from going on, "" where all were made, and whether another time it may be otherwise.
    """

    def __init__(
        self,
        selector: Selector,
        loops: Loops,
        wanted: Rehearsals,
        begun: Callable[[], None],
        ended: Callable[[str, bool], None],
        snapshot: Callable[[], Snapshot] = Snapshot,
    ) -> None:
        self._length, self._taken = sys.maxsize, snapshot
        self._selector, self._loops, self._wanted, self._begun, self._ended = selector, loops, wanted, begun, ended
        self._signals = HeldBack()
        self._snapshot: Snapshot | None = None
        self._now: Rehearsal | None = None
        self._running = False  # an iteration is under way
        self._over = False  # this rehearsal comes to no further iteration
        self._why = ""  # all is to end
        self._may_again = False  # another time it may be

    def top(self) -> None:
        """An iteration begins: one more of this rehearsal, or the first of the next."""
        try:
            if self._signals.due:
                self._end("it was interrupted")
            else:
                self._top()
        except Exception as error:  # of ours, or memory: whatever it is, the program is to go on
            self._end(f"it could not be made: {type(error).__name__}: {error}")
        except BaseException:
            self._end("it was interrupted")
            raise
        if self._snapshot is None:  # all is the program's own again
            self._signals.deliver()

    def _top(self) -> None:
        if self._snapshot is None:
            self._begun()
            self._signals.begin()
            self._snapshot = self._taken()
            self._loops.record()
            self._begin(next(self._wanted))
            return
        now = self._now
        assert now is not None
        if self._running:
            now.made += 1
            self._over = bool(now.after_each())
        if not self._over and now.made < self._length:
            self._running = True
            return
        self._finish(now)
        if self._why:
            self._end(self._why)
            return
        self._put_back()
        try:
            self._begin(self._wanted.send(now))
        except StopIteration:
            self._end("")

    def is_over(self, made: bool) -> bool:
        """The loop ends within the iterations that are rehearsed: they are fewer."""
        if self._snapshot is None or self._now is None:
            return False
        if made:
            self._now.made += 1
            self._now.after_each()
        self._is_shorter(self._now.made)
        return True

    def _is_shorter(self, iterations: int) -> None:
        self._length, self._running, self._over = iterations, False, True
        if iterations < FEWEST:
            self._why, self._may_again = f"its loop ends within {FEWEST} more iterations", True

    def failed(self, error: BaseException) -> bool:
        """A version has raised something, or would leave the loop: that was all of it."""
        now = self._now
        if self._snapshot is None or now is None:
            return False
        if not isinstance(error, Exception | LeftError):
            self._end("it was interrupted")
            return False
        self._running, self._over = False, True
        if isinstance(error, LeftError) and not now.version:
            self._is_shorter(now.made)
            return True
        now.error = "it leaves the loop" if isinstance(error, LeftError) else f"{type(error).__name__}: {error}"
        if not now.version:
            self._why = f"the program itself fails in these steps: {now.error}"
        return True

    def _begin(self, rehearsal: Rehearsal) -> None:
        self._now, self._over, self._running = rehearsal, False, True
        self._selector.version = rehearsal.version
        self._selector.entered.clear()
        self._selector.restored()
        rehearsal.before()

    def _finish(self, rehearsal: Rehearsal) -> None:
        rehearsal.after()
        for (passage, version), count in self._selector.entered.items():
            if version == rehearsal.version:
                rehearsal.entered[passage] = count

    def _put_back(self) -> None:
        assert self._snapshot is not None
        wait()
        self._snapshot.put_back()
        self._loops.rewind()
        wait()

    def _end(self, why: str) -> None:
        self._selector.forget()
        self._wanted.close()
        if self._snapshot is not None:
            self._put_back()
        self._loops.release()
        self._snapshot = self._now = None
        self._signals.end()
        self._ended(why, self._may_again)


def wait() -> None:
    """Until the device has nothing left to do: what is put back is not to be read by what was asked for before."""
    torch: Any = sys.modules.get("torch")
    if getattr(getattr(torch, "cuda", None), "_initialized", False):
        torch._C._cuda_synchronize()  # the bare one: it is no read of the program's
    if (queue := sys.modules.get("syncscope.kernels.queue")) is not None:
        queue.finish()
