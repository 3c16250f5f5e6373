"""A step of fixed shape, recorded and enqueued again without the Python in between: what CUDA graphs are for.

What a step enqueues is recorded twice. Where the two differ in anything but memory, a number was made on the host (a bias
correction, a size): a replay would repeat it, so the step is refused. Random numbers of the device each replay draws anew.

Whoever observes the device sees a replay operator by operator, each under its name and the line that called it when it was
captured.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from time import monotonic_ns
from types import FrameType
from typing import Any

import numpy as np
import pyopencl as cl
import torch
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from syncscope.errors import UserError
from syncscope.kernels import memory, operators, programs, queue
from syncscope.kernels.generator import Draw
from syncscope.kernels.queue import Command

_capturing: list[bool] = []
_INSIDE = tuple(str(Path(file).parent) + "/" for file in (torch.__file__, __file__))  # not the user's lines
# Are told after a replay of each optimizer that stepped when it was captured.
replayed: list[Callable[[Optimizer], None]] = []


class Graph:
    """What a step enqueues; `result` is what it gave when it was recorded, which a replay fills anew."""

    def __init__(
        self,
        commands: list[Command],
        labels: list[str],
        result: Any,
        pool: memory.Pool,
        optimizers: Iterable[Optimizer] = (),
    ) -> None:
        self._count = len(commands)
        of = zip(labels, commands, strict=True)
        self._operators = [(label, [c for _, c in own]) for label, own in itertools.groupby(of, lambda pair: pair[0])]
        self._runs = _together(commands)
        self._optimizers = tuple(optimizers)  # kept: a replay reads their state from where it lay
        self._pool = pool  # the memory that the step takes for itself: nobody else may have it meanwhile
        self.result = result

    def __len__(self) -> int:
        return self._count

    def replay(self) -> None:
        """Enqueues the step again, on the memory that it was recorded on; returns at once."""
        if queue.observers:
            self._observed()
        else:
            for enqueue, arguments in self._runs:
                enqueue(*arguments)
        for heard in replayed:
            for optimizer in self._optimizers:
                heard(optimizer)

    def _observed(self) -> None:
        for label, commands in self._operators:
            start = monotonic_ns()
            for enqueue, arguments in commands:
                enqueue(*arguments)
            for observer in queue.observers:
                observer(label, start, queue.AS_KNOWN, (), {}, None)


def capture(step: Callable[[], Any]) -> Graph:
    """Runs a step three times, as it is, and records the last two.

    Replays read what the step read, from where it lay: write new data into the same input tensors (`x.copy_(...)`), and keep
    them. Tensors that the step made anew live as long as the graph, and every replay overwrites them.

    Raises:
        UserError: the step waits for the device, or is not the same each time; the message says where.
    """
    step()
    queue.settle()
    pool: memory.Pool = memory.new_pool()
    stepped: list[Optimizer] = []
    hook = register_optimizer_step_post_hook(lambda optimizer, *_: stepped.append(optimizer))
    try:
        with memory.taken_from(pool):
            first, _, _ = recorded(step)
            stepped.clear()
            second, labels, result = recorded(step)
    finally:
        hook.remove()
    return made((first, second), labels, result, pool, stepped)


def made(
    runs: tuple[list[Command], list[Command]],
    labels: list[str],
    result: object,
    pool: memory.Pool,
    optimizers: Iterable[Optimizer] = (),
) -> Graph:
    """The graph of what was recorded twice.

    Raises:
        UserError: it is not the same each time.
    """
    _compare(*runs)
    return Graph([_settled(command) for command in runs[1]], labels, result, pool, optimizers)


def _together(commands: list[Command]) -> list[Command]:
    """The same, with launches that follow each other in one call."""
    found: list[Command] = []
    for alike, run in itertools.groupby(commands, lambda command: command[0] is queue.launch_again):
        if alike:
            found.append((queue.listed(tuple(ready for _, (readies,) in run for ready in readies)), ()))
        else:
            found += run
    return found


def _settled(command: Command) -> Command:
    """A launch with arguments that are set for good."""
    enqueue, arguments = command
    if enqueue is not queue.launch:
        return command
    kernel, size, group, *values = arguments
    ready = queue.Ready(programs.with_arguments(kernel, values), size, group, draws=queue.draws(values))
    return queue.launch_again, ((ready,),)


def recorded(step: Callable[[], Any]) -> tuple[list[Command], list[str], Any]:
    """What a step enqueues, the operator and line behind each, and what it gives."""
    if _capturing:
        raise UserError("a step is being captured already", "captures do not nest")
    commands: list[Command] = []
    labels: list[str] = []
    caller = threading.get_ident()

    def enqueued(enqueue: Callable[..., None], *arguments: object) -> None:
        if enqueue is queue.read:
            raise UserError(
                f"the step cannot be captured: the host waits for the device in {arguments[-1]}",
                "read the loss after replay(), not in the step",
            )
        commands.append((enqueue, arguments))
        labels.append(_label(sys._getframe(1), caller))

    _capturing.append(True)
    queue.recorders.append(enqueued)
    try:
        result = step()
        return commands, labels, result
    finally:
        queue.recorders.remove(enqueued)
        _capturing.clear()


def _label(frame: FrameType | None, caller: int) -> str:
    """The outermost operator at work, and the user's line; for a backward pass on a thread of its own, the line that waits."""
    name, user = "", None
    while frame is not None:
        if frame.f_code is operators.RUNNING:
            name = frame.f_locals["label"]
        elif not frame.f_code.co_filename.startswith(_INSIDE):
            user = frame
            break
        frame = frame.f_back
    if user is None and threading.get_ident() != caller:
        user = sys._current_frames().get(caller)
        while user is not None and user.f_code.co_filename.startswith(_INSIDE):
            user = user.f_back
    where = "" if user is None else f" (captured at {_short(user.f_code.co_filename)}:{user.f_lineno})"
    return sys.intern(f"{name or 'a command'}{where}")


def _short(path: str) -> str:
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def _compare(first: list[Command], second: list[Command]) -> None:
    hint = "use fused=True for Adam, keep shapes the same, and draw numbers of the CPU before the step"
    for k, (a, b) in enumerate(zip(first, second, strict=False)):
        if a[0] is not b[0] or len(a[1]) != len(b[1]) or not all(map(_same, a[1], b[1])):
            raise UserError(
                f"the step cannot be captured: {_named(b)}, number {k + 1} of what it enqueues, is not the same each time",
                hint,
            )
    if len(first) != len(second):
        raise UserError(f"the step cannot be captured: it enqueued {len(first)} commands, then {len(second)}", hint)


def _named(command: Command) -> str:
    enqueue, arguments = command
    return str(getattr(arguments[0], "function_name", enqueue.__name__))


def _same(a: object, b: object) -> bool:
    if isinstance(a, cl.MemoryObjectHolder):
        return isinstance(b, cl.MemoryObjectHolder)
    if isinstance(a, Draw):
        return isinstance(b, Draw) and a.generator is b.generator and a.ahead == b.ahead
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return bool(np.array_equal(a, b))
    return bool(a is b or a == b or (a != a and b != b))
