"""`torch.cuda.empty_cache()` in the step.

Why it waits
------------
To give memory back to the driver, the host waits until the device has done everything; the next allocations ask the driver
again, which is slow and waits too. PyTorch uses the memory again by itself.

Fix safety
----------
Unsafe without it, because memory that PyTorch holds is then not free for other programs, or for itself in other sizes.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View

FAMILY = Family.EXPLICIT
SEVERITY = Severity.WARNING
OPS = ("empty_cache",)
SEEN_AS = ("cudaFree", "hipFree", "clReleaseMemObject")
EXAMPLES = (
    Example(
        """
        import torch

        def train(model, loader, optimizer):
            for x in loader:
                model(x).mean().backward()
                optimizer.step()
                torch.cuda.empty_cache()  # !
        """,
        """
        import torch

        def train(model, loader, optimizer):
            for x in loader:
                model(x).mean().backward()
                optimizer.step()
        """,
        Safety.UNSAFE,
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} waits until the device has done everything, and makes the next allocations slow"


def rewrite(site: Site, function: Function) -> Fix | None:
    statement = function.parent(site.node)
    if not isinstance(statement, ast.Expr):
        return None
    if not function.alone(statement):
        return None
    draft = function.draft()
    draft.remove(statement)
    return draft.fix("take it out", Safety.UNSAFE, "memory that PyTorch holds is not given back to the driver")
