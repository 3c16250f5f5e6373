"""A clock read around device work without waiting for the device.

Why it waits
------------
It does not wait, and that is what is wrong: the host has only asked for the work when the clock is read, so the time is that of
asking. Wait for the device before each reading, or record events on the device.

Fix safety
----------
Waiting before the clock is suggested, not applied, because it makes the host wait, and only the measurement wants that.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View
from syncscope.rules.unique import simple

FAMILY = Family.TIMING
SEVERITY = Severity.WARNING
OPS = ("timing",)
SEEN_AS = ()
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
    Example(
        """
        import time
        import torch

        def measure(model, x: torch.Tensor):
            torch.cuda.synchronize()
            start = time.perf_counter()
            y = model(x)
            torch.cuda.synchronize()
            return time.perf_counter() - start
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} is read while the device still works: the time is that of asking, not of the work"


def rewrite(site: Site, function: Function) -> Fix | None:
    statement = function.statement(site.node)
    if statement is None or not isinstance(site.node, ast.expr) or not simple(function, statement, site.node):
        return None
    if function.indent(statement).strip():
        return None
    draft = function.draft()
    draft.insert_before(statement, "torch.cuda.synchronize()")
    return draft.fix(
        "wait for the device before", Safety.SUGGEST, "the host waits there; other devices have their own call"
    )
