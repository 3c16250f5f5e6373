"""Finds training steps where nobody marks them: a step ends with the `step()` of the optimizer that was seen first, by whoever
listens. One that has stopped meanwhile is followed by the next: a program may train one model after the other, and keep both.

Of a program that changes its parameters by hand, without an optimizer, each backward pass ends one.
"""

from __future__ import annotations

import functools
import gc
import sys
import weakref
from typing import Any

from syncscope.tracers.hooks import methods
from syncscope.tracers.hooks.listeners import listeners
from syncscope.tracers.hooks.patches import beats

SURE = 4  # backward passes by which a program would have made its optimizer
STOPPED = 128  # steps of others after which it makes no more: a critic makes 100 beside one of what it judges

_first: weakref.ref[Any] | None = None
_others = 0  # steps of other optimizers since it stepped
_passes = 0  # so far, as long as it is not known whether there is an optimizer
_by_hand = False


def _stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
    global _first, _others, _by_hand
    _by_hand = False
    if _first is None or _first() is None or _others >= STOPPED:
        _first = weakref.ref(optimizer)
    if _first() is optimizer:
        _others = 0
        _tell()
    else:
        _others += 1


def _tell() -> None:
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
    global _first
    _first = None  # that of an earlier recording may live on, and not step any more
    beats.later(module.register_optimizer_step_post_hook(_stepped).remove)


def passes(torch: Any) -> None:
    """Has torch tell of each backward pass, without anybody's seeing it."""
    global _passes, _by_hand
    _passes, _by_hand = 0, False
    _hooks(torch).put(patches=beats)


@functools.cache
def _hooks(torch: Any) -> methods.Hooks:
    def begins(_: Any, args: Any, kwargs: Any) -> methods.Answer | None:
        if not (kwargs or {}).get("accumulate_grad") or (_passes >= SURE and not _by_hand):
            return None  # `torch.autograd.grad` ends no step
        return None, None, ends

    hooks = methods.Hooks()
    hooks.hear(torch._C._ImperativeEngine, "run_backward", begins)
    return hooks


def ends(_: Any) -> None:
    """A backward pass has ended."""
    global _passes, _by_hand
    if _passes < SURE:
        _passes += 1
        _by_hand = _passes == SURE and not _has_optimizer()
    if _by_hand:
        _tell()


def _has_optimizer() -> bool:
    optim = sys.modules.get("torch.optim")
    return optim is not None and any(issubclass(type(one), optim.Optimizer) for one in gc.get_objects())
