"""Clocks that are restarted in every round of a loop."""

from __future__ import annotations

import ast

from syncscope.model.fact import Emitted
from syncscope.model.ops import Family, Op
from syncscope.tensors.frame import Frame


def settle(frame: Frame, loop: ast.For | ast.AsyncFor | ast.While) -> None:
    """A clock that is read and started again, and something that waits after it, in each round: from one start to the next
    the host has waited for all the work of a round, so the times are true but for the first."""
    if frame.clock is None or not frame.waits or not _within(loop, frame.clock):
        return
    for key, wait in frame.waits.items():
        if wait.op is Op.TIMING and wait.node is not frame.clock and _within(loop, wait.node):
            last = _line(frame.clock)
            if any(
                _waits(other) and _within(loop, other.node) and _line(other.node) > last
                for other in frame.waits.values()
            ):
                frame.waits[key] = wait._replace(confidence=1)


def _waits(wait: Emitted) -> bool:
    return wait.confidence > 1 and wait.op.family in (Family.READ, Family.EXPLICIT)


def _line(node: ast.AST) -> int:
    return int(node.lineno)  # type: ignore[attr-defined]  # a call or a loop


def _within(loop: ast.For | ast.AsyncFor | ast.While, node: ast.AST) -> bool:
    return loop.lineno <= _line(node) <= (loop.end_lineno or 0)
