"""Records the operators of our own device: a function in C where the hook is compiled, else Python and the journal.

There are hundreds in a step, and half of them (views, memory) launch nothing: what is done for each is what a recording costs.
"""

from __future__ import annotations

import sys
from time import monotonic_ns
from typing import Any

from syncscope.tracers import driver_reads, native, reads
from syncscope.tracers.journal import Journal
from syncscope.tracers.shapes import Shapes

QUEUE = "syncscope.kernels.queue"


class Operators:
    """From `listen` to `stop`, every operator goes into the hook's spool; into the journal where shapes are wanted."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._shapes = Shapes(journal.fact)
        self._wanted = 0
        self._compiled = native.observer(driver_reads.explain)
        self._observers: list[Any] | None = None  # of the device, once it is there
        self._mine: Any = None
        self._forget = reads.when_imported(QUEUE, lambda queue: self.listen())

    def want_shapes(self, more: int) -> None:
        """One window more, or less, wants to know what operators were given."""
        self._wanted += more
        self.listen()

    def listen(self) -> None:
        """To the operators of our own device, once it is there."""
        queue = sys.modules.get(QUEUE)
        mine = self._compiled if self._compiled is not None and not self._wanted else self._in_python
        if queue is None or mine == self._mine:
            return
        self._observers = queue.observers
        if self._mine is None:
            queue.observers.append(mine)
        else:  # at once: another thread's operators are not to be missed or told of twice
            queue.observers[queue.observers.index(self._mine)] = mine
        self._mine = mine

    def stop(self) -> None:
        """No more."""
        self._forget()
        if self._observers is not None:
            self._observers.remove(self._mine)
            self._observers = None

    def _in_python(
        self, name: str, start: int, fallback: bool, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        end = monotonic_ns()
        detail = self._shapes.number(name, args, kwargs, result) if self._wanted else 0
        self._journal.operator(name, start, end, fallback, reads.local.thread, detail)
        driver_reads.explain(name, start, end, fallback)
