"""A step of fixed shape, recorded and enqueued again without the Python in between: what CUDA graphs are for.

What a step enqueues is recorded twice. Where the two differ in anything but memory, a number was made on the host (a random
one, a bias correction, a size): a replay would repeat it, so the step is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl

from syncscope.errors import UserError
from syncscope.kernels import memory, programs, queue

Command = tuple[Callable[..., None], tuple[Any, ...]]
_capturing: list[bool] = []


class Graph:
    """What a step enqueues; `result` is what it gave when it was recorded, which a replay fills anew."""

    def __init__(self, commands: list[Command], result: Any, pool: memory.Pool) -> None:
        self._commands = commands
        self._pool = pool  # the memory that the step takes for itself: nobody else may have it meanwhile
        self.result = result

    def __len__(self) -> int:
        return len(self._commands)

    def replay(self) -> None:
        """Enqueues the step again, on the memory that it was recorded on; returns at once."""
        for enqueue, arguments in self._commands:
            enqueue(*arguments)


def capture(step: Callable[[], Any]) -> Graph:
    """Runs a step three times, as it is, and records the last two.

    Replays read what the step read, from where it lay: write new data into the same input tensors (`x.copy_(...)`), and keep
    them. Tensors that the step made anew live as long as the graph, and every replay overwrites them.

    Raises:
        UserError: the step waits for the device, or is not the same each time; the message says where.
    """
    step()
    pool: memory.Pool = memory.new_pool()
    with memory.taken_from(pool):
        first, _ = _recorded(step)
        second, result = _recorded(step)
    _compare(first, second)
    return Graph([_settled(command) for command in second], result, pool)


def _settled(command: Command) -> Command:
    """A launch with arguments that are set for good."""
    enqueue, arguments = command
    if enqueue is not queue.launch:
        return command
    kernel, size, group, *values = arguments
    return queue.launch_again, ((queue.Ready(programs.with_arguments(kernel, values), size, group),),)


def _recorded(step: Callable[[], Any]) -> tuple[list[Command], Any]:
    if _capturing:
        raise UserError("a step is being captured already", "captures do not nest")
    commands: list[Command] = []

    def enqueued(enqueue: Callable[..., None], *arguments: Any) -> None:
        if enqueue is queue.read:
            raise UserError(
                f"the step cannot be captured: the host waits for the device in {arguments[-1]}",
                "read the loss after replay(), not in the step",
            )
        commands.append((enqueue, arguments))

    _capturing.append(True)
    queue.recorders.append(enqueued)
    try:
        return commands, step()
    finally:
        queue.recorders.remove(enqueued)
        _capturing.clear()


def _compare(first: list[Command], second: list[Command]) -> None:
    hint = "draw random numbers before the step, use fused=True for Adam, and keep shapes the same"
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


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, cl.MemoryObjectHolder):
        return isinstance(b, cl.MemoryObjectHolder)
    if isinstance(a, np.ndarray):
        return bool(np.array_equal(a, b))
    return bool(a is b or a == b or (a != a and b != b))
