"""The same steps by several versions, one after the other inside of one run, and what each of them computes.

    ... a step │ snapshot ─ settle ─ settle ─ steps that are compared │ put back, rewind ─ settle ─ settle ─ steps ...
                                 │        │                                                  as the next version
                              put back  put back

Behind `optimizer.step()` the rest of the loop's body is still to come, with the loss of the step before; and some loops take
their batch one step ahead. So the first steps do not count, and what they changed is put back: from then on each version begins
with the same numbers, the same loss and the same batch.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from syncscope.turns.selector import Selector
from syncscope.verify.capture import Capture
from syncscope.verify.deterministic import OneOrder
from syncscope.verify.request import RESULT, Request
from syncscope.verify.snapshot import Snapshot

SETTLE = 2  # steps that do not count
# that are compared; fewer, where these take long, and the fewest only where a loop ends before. With SETTLE
STEPS = 18, 8, 3
# multiples of 5: what is done every few steps is done in the same of them


class SameSteps:
    """One of them, of at `most` so many steps for each version if that can be: `begin`, then `boundary` after each step, as
    long as they say that there is more to come.

    It answers `{"compared": version, "folder": ...}` for each, or `{"compared": None, "why": ...}`.
    """

    def __init__(
        self,
        request: Request,
        optimizers: dict[int, Any],
        selector: Selector,
        passages: Callable[[int], set[int]],
        say: Callable[[dict[str, Any]], None],
        most: float,
    ) -> None:
        self.request, self.optimizers = request, optimizers
        self.count = 0  # steps of this version, from those on that count
        self.folder = Path(request.folder)
        self._selector, self._passages, self._say = selector, passages, say
        self._tape = selector.tape
        self._lengths = list(STEPS if SETTLE + STEPS[0] <= most else STEPS[1:])
        self._versions: list[int] = []
        self._at = 0
        self._capture: Capture | None = None
        self._stack = contextlib.ExitStack()
        self._entered: dict[tuple[int, int], int] = {}
        self._one_order = OneOrder()

    def begin(self, versions: list[int]) -> bool:
        """Takes the snapshot. False where that cannot be."""
        self._versions = versions
        self._selector.restored()
        self._selector.version = 0
        try:
            self._snapshot = Snapshot()
        except Exception as error:
            self._say({"compared": None, "why": f"what the program holds cannot be copied: {error}"})
            return False
        self._tape.record()
        self._one_order.hold()
        self._start(0)
        return True

    def boundary(self) -> bool:
        """A step has ended. False when all have been compared."""
        self.count += 1
        if self._at == 0 and self._tape.ended:
            return self._again()
        if self.count <= 0:
            self._snapshot.put_back()
            if self.count == 0:
                self._listen()
            return True
        assert self._capture is not None
        self._capture.boundary()
        if self.count < self._lengths[0]:
            return True
        self._tell()
        return self._next()

    def _start(self, at: int) -> None:
        self._at, self.count = at, -SETTLE
        self._selector.restored()
        self._selector.version = self._versions[at]
        self._entered = dict(self._selector.entered)

    def _next(self) -> bool:
        self._snapshot.put_back()
        if self._at + 1 < len(self._versions):
            self._tape.rewind()
            self._start(self._at + 1)
            return True
        self._tape.release()
        self._selector.restored()
        self._selector.version = 0
        self._one_order.release()
        return False

    def _again(self) -> bool:
        """A loop has ended: from here on, with fewer steps."""
        self._stack.close()
        self._capture = None
        self._lengths.pop(0)
        if not self._lengths:
            self._tape.stop()
            self._one_order.release()
            self._say({"compared": None, "why": f"a loop ends within {SETTLE + STEPS[-1]} steps"})
            return False
        return self.begin(self._versions)

    def _listen(self) -> None:
        self.folder = Path(self.request.folder, f"compared{self._at}")
        self.folder.mkdir(exist_ok=True)
        self._capture = Capture(self)
        self._capture.listen(self._stack)

    def _tell(self) -> None:
        """What it has computed."""
        from syncscope.tracers.hooks import reads

        assert self._capture is not None
        found = {"steps": self.count, **self._capture.found()}
        self._stack.close()
        self._capture = None
        reads.local.inside = False
        (self.folder / RESULT).write_text(json.dumps(found))
        version = self._versions[self._at]
        entered = self._selector.entered
        missed = [p for p in self._passages(version) if entered.get((p, version)) == self._entered.get((p, version))]
        self._say({"compared": version, "folder": str(self.folder), "missed": bool(missed)})
