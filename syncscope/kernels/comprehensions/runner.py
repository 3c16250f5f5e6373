"""A function that runs: bound to arguments once for each shape, on `ocl` as a plan of kernels, elsewhere through torch."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from syncscope.kernels.comprehensions import on_torch
from syncscope.kernels.comprehensions.dtypes import Argument
from syncscope.kernels.comprehensions.notation import INTEGERS
from syncscope.kernels.comprehensions.program import Program, bind
from syncscope.kernels.comprehensions.statements import Function
from syncscope.kernels.memo import Memo

if TYPE_CHECKING:
    from syncscope.kernels.comprehensions import on_ocl

_KEPT = 256  # shapes whose plans are kept
_OURS = (str(Path(__file__).parents[2]) + "/", str(Path(torch.__file__).parent) + "/")


class Bound(NamedTuple):
    """What a function is for certain shapes: the program, and on ocl its plan."""

    program: Program
    plan: on_ocl.Plan | None = None


class Runner:
    """A function of which its plans are kept."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.names = tuple(p.name for p in function.parameters)
        self._made: Memo[Bound] = Memo(_KEPT)
        self._told: dict[str, str] = {}  # by line: the name under which observers hear of a call there
        self._kept: Callable[..., tuple[Tensor, ...]] | None = None  # follows its own notes, see kernels/plans.py

    def results(self, args: Sequence[Argument], line: str = "") -> tuple[Tensor, ...]:
        """The results in order, without a gradient; `line` is whose they are, for whoever observes, else the caller's own."""
        if not any(isinstance(x, Tensor) and x.device.type == "ocl" for x in args):
            return self._computed(*args)
        from syncscope.kernels import plans, queue

        begin = monotonic_ns()
        if self._kept is None:
            self._kept = plans.followed(None, plans.kept(self._computed))
        results: tuple[Tensor, ...] = self._kept(*args)
        if queue.observers:
            line = line or calling_line()
            said = f"comprehension::{self.function.name} at {line}"
            name = self._told.setdefault(line, said)  # observers know it by identity
            for observer in queue.observers:
                observer(name, begin, queue.AS_KNOWN, tuple(args), {}, results)
        return results

    def _computed(self, *args: Argument) -> tuple[Tensor, ...]:
        found, known = self.made(args), dict(zip(self.names, args, strict=True))
        made = on_torch.run(found.program, known) if found.plan is None else found.plan(known)
        return tuple(made[name] for name in self.function.results)

    def made(self, args: Sequence[Argument]) -> Bound:
        """What runs these arguments, and any others that are like them."""
        key = tuple(_like(p.type, x) for p, x in zip(self.function.parameters, args, strict=False)), len(args)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self._bound(args)
        return found

    def _bound(self, args: Sequence[Argument]) -> Bound:
        program = bind(self.function, args)
        tensors = {n: x for n, x in zip(self.names, args, strict=True) if isinstance(x, Tensor)}
        if len({x.device for x in tensors.values()}) > 1:
            said = ", ".join(f"{n} on {x.device}" for n, x in tensors.items())
            message = f"the tensors of {self.function.name} are on several devices"
            raise self.function.error(self.function.at, message, said)
        if any(x.device.type == "ocl" for x in tensors.values()):
            from syncscope.kernels.comprehensions import on_ocl
            from syncscope.kernels.operators import NotNative

            with contextlib.suppress(NotNative):  # then it runs through torch, operator by operator
                return Bound(program, on_ocl.plan(program, tensors))
        return Bound(program)

    def forget(self) -> None:
        """Plans are made anew, as after tuning."""
        self._made.clear()


def _like(type_: str, x: Argument) -> Argument:
    """What of an argument its plan depends on."""
    if isinstance(x, Tensor):
        return x.dtype, x.shape, x.stride(), x.storage_offset() % 4, x.device
    return x if type_ in INTEGERS else type(x)


def calling_line() -> str:
    """The user's line among the callers, as file:line."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
