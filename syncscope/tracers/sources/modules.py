"""The calls of `nn.Module`s, as regions named `nn.Module: model.layer1.0`; where operators are wanted.

torch's own global hooks tell of them. What a compiler traces is left as it is: there they do nothing.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from syncscope.tracers import modules
from syncscope.tracers.hooks.patches import patches
from syncscope.tracers.python_events import PythonEvents
from syncscope.tracers.sources import Source

PREFIX = "nn.Module: "  # as torch.profiler writes it


class _Running(threading.local):
    def __init__(self) -> None:
        self.since: list[int] = []  # when each of the modules that run on this thread was called


class Modules(Source):
    """From `start` to `stop`, every call of a module goes to `events`."""

    def __init__(self) -> None:
        self._handles: list[Any] = []
        self._forget: Callable[[], None] = lambda: None

    def start(self, events: PythonEvents) -> None:
        """Begins to listen as soon as torch is there."""
        self._events = events
        if events.operators_wanted:
            self._forget = patches.when_imported("torch", self._listen)

    def _listen(self, torch: Any) -> None:
        events, running, compiling, kind = self._events, _Running(), torch.compiler.is_compiling, torch.nn.Module

        def before(module: Any, args: Any) -> None:
            if not compiling():
                running.since.append(monotonic_ns())

        def after(module: Any, args: Any, result: Any) -> None:
            if not compiling() and running.since:  # none where the recording began within the call
                start, name = running.since.pop(), modules.path_from(sys._getframe(1), kind)
                events.annotation(f"{PREFIX}{name or type(module).__name__}", start, monotonic_ns())

        hooks = torch.nn.modules.module
        self._handles = [
            hooks.register_module_forward_pre_hook(before),
            hooks.register_module_forward_hook(after, always_call=True),
        ]

    def stop(self) -> None:
        """No more."""
        self._forget()
        for handle in self._handles:
            handle.remove()
        self._handles.clear()


SOURCE = Modules
