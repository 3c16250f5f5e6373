"""Waits for the device that a clock needs, which is read right after."""

from __future__ import annotations

import ast

from syncscope.model.fact import Emitted
from syncscope.model.ops import Op
from syncscope.project.syntax import name_of, parents, walk

CLOCKS = frozenset(
    "time perf_counter monotonic time_ns perf_counter_ns monotonic_ns default_timer process_time".split()
)


def before_clock(wait: Emitted, root: ast.AST) -> bool:
    """Whether this makes the host wait for the device, and what comes next reads a clock."""
    if wait.op is not Op.SYNCHRONIZE:
        return False
    around = parents(root)
    inner: ast.AST = wait.node
    while (outer := around.get(inner)) is not None:
        blocks = (getattr(outer, part, ()) for part in ("body", "orelse"))
        if block := next((each for each in blocks if isinstance(each, list) and inner in each), None):
            after = block[block.index(inner) + 1 :]
            if after or not isinstance(outer, ast.If):  # it may be asked first whether there is such a device
                return bool(after) and _reads_clock(after[0])
        inner = outer
    return False


def _reads_clock(statement: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) and name_of(n.func) in CLOCKS for n in walk(statement))
