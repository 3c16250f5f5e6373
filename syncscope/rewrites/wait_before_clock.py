"""`torch.cuda.synchronize()` put before a clock that is read."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

EXAMPLES = (
    Example(
        """
        import time
        import torch

        def measure(model, x: torch.Tensor):
            start = time.perf_counter()
            y = model(x)
            return time.perf_counter() - start  # !
        """,
        """
        import time
        import torch

        def measure(model, x: torch.Tensor):
            start = time.perf_counter()
            y = model(x)
            torch.cuda.synchronize()
            return time.perf_counter() - start
        """,
        Safety.SUGGEST,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    statement = function.statement(site.node)
    if statement is None or not isinstance(site.node, ast.expr) or not function.runs_first(statement, site.node):
        return None
    if function.indent(statement).strip():
        return None
    draft = Draft(function)
    draft.insert_before(statement, "torch.cuda.synchronize()")
    return draft.fix(
        "wait for the device before", Safety.SUGGEST, "the host waits there; other devices have their own call"
    )
