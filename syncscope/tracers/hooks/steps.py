"""Finds training steps where nobody marks them: a step ends with the `step()` of the optimizer that was seen first."""

from __future__ import annotations

import weakref
from typing import Any

from syncscope.tracers.hooks.listeners import listeners
from syncscope.tracers.hooks.patches import beats

_first: weakref.ref[Any] | None = None


def _stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
    global _first
    if _first is None or _first() is None:
        _first = weakref.ref(optimizer)
    if _first() is optimizer:
        for step in listeners.steps:
            step()


def replays(capture: Any) -> None:
    """Has the device tell of each step that it replays: no optimizer is called then."""

    def heard(optimizer: Any) -> None:
        _stepped(optimizer, None, None)

    capture.replayed.append(heard)
    beats.later(capture.replayed.remove, heard)


def install(module: Any) -> None:
    """Has torch.optim tell of each step."""
    beats.later(module.register_optimizer_step_post_hook(_stepped).remove)
