"""Steps of a program that changes its parameters by hand: no optimizer steps there, so that each backward pass ends one."""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from syncscope.tracers.hooks.patches import beats

SURE = 4  # backward passes by which a program would have made its optimizer


class ByHand:
    """Calls `step` after each backward pass from the `SURE`-th on, if there is no optimizer by then."""

    def __init__(self, step: Callable[[], None]) -> None:
        self._step = step
        self._passes = 0
        self.is_so: bool | None = None  # None: not known yet

    def listen(self) -> Callable[[], None]:
        """From now on; returns how to take that back."""
        return beats.when_imported("torch.autograd", self._install)

    def _install(self, autograd: ModuleType) -> None:
        backward = autograd.backward

        @functools.wraps(backward)
        def heard(*args: Any, **kwargs: Any) -> None:
            backward(*args, **kwargs)
            self._passed()

        beats.replace(autograd, "backward", heard)

    def _passed(self) -> None:
        self._passes += self.is_so is None
        if self.is_so is None and self._passes == SURE:
            self.is_so = not _has_optimizer()
        if self.is_so:
            self._step()


def _has_optimizer() -> bool:
    kind = sys.modules["torch"].optim.Optimizer
    return any(issubclass(type(one), kind) for one in gc.get_objects())
