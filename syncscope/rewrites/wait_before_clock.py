"""`torch.cuda.synchronize()` put before a clock that is read."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.devices import needs_cuda
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
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            return time.perf_counter() - start
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import time
        import torch

        def measure(model, x: torch.Tensor):
            start = time.perf_counter()
            y = model(x.cuda())
            return time.perf_counter() - start  # !
        """,
        """
        import time
        import torch

        def measure(model, x: torch.Tensor):
            start = time.perf_counter()
            y = model(x.cuda())
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
    wait = "torch.cuda.synchronize()"
    if not needs_cuda(function):  # without CUDA it is an error
        indent = function.indent(statement)
        deeper = f"{indent}\t" if "\t" in indent else f"{indent}    "
        wait = f"if torch.cuda.is_available():\n{deeper}{wait}"
    draft.insert_before(statement, wait)
    return draft.fix(
        "wait for the device before", Safety.SUGGEST, "the host waits there", "other devices have their own call"
    )
