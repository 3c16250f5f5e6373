"""The operators of our own device: recorded by a function in C where the hook is compiled, else in Python.

There are hundreds in a step, and half of them (views, memory) launch nothing: what is done for each is what a recording costs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from syncscope.tracers.hooks import pyopencl, reads
from syncscope.tracers.hooks.patches import patches
from syncscope.tracers.opencl import compiled
from syncscope.tracers.python_events import PythonEvents
from syncscope.tracers.shapes import Shapes
from syncscope.tracers.sources import Source

QUEUE = "syncscope.kernels.queue"


class Operators(Source):
    """From `start` to `stop`, every operator goes into the hook's file; to `events` where shapes are wanted."""

    def __init__(self) -> None:
        self._observers: list[Any] | None = None  # of the device, once it is there
        self._mine: Any = None
        self._forget: Callable[[], None] = lambda: None

    def start(self, events: PythonEvents) -> None:
        """Begins to listen as soon as the device is there."""
        self._events = events
        self._shapes = Shapes(events.fact)
        self._compiled = compiled.observer(pyopencl.explain)
        self._forget = patches.when_imported(QUEUE, lambda queue: self.boundary())

    def boundary(self) -> None:
        """Listens to the device if it has come, and in the way that is wanted by now."""
        queue = sys.modules.get(QUEUE)
        mine = self._compiled if self._compiled is not None and not self._events.shapes_wanted else self._in_python
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
        self, name: str, start: int, how: int, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        end = monotonic_ns()
        detail = self._shapes.number(name, args, kwargs, result) if self._events.shapes_wanted else 0
        self._events.operator(name, start, end, how, reads.local.thread, detail)
        pyopencl.explain(name, start, end, how)


SOURCE = Operators
