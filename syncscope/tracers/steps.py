"""Finds training steps where nobody marks them: a step ends with the `step()` of the optimizer that was seen first."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from syncscope.tracers import reads

sinks: list[Callable[[], None]] = []
_first: weakref.ref[Any] | None = None


def _stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
    global _first
    if _first is None or _first() is None:
        _first = weakref.ref(optimizer)
    if _first() is optimizer:
        for sink in sinks:
            sink()


def _optimizer(module: Any) -> None:
    handle = module.register_optimizer_step_post_hook(_stepped)
    reads.undo(handle.remove)


def install() -> Callable[[], None]:
    """Begins to look for steps; returns how to stop."""
    forget = reads.when_imported("torch.optim.optimizer", _optimizer)
    reads.rescan()
    return forget
