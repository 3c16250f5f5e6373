"""`torch.cuda.empty_cache()` taken out."""

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


def rewrite(site: Site, function: Function) -> Fix | None:
    statement = function.parent(site.node)
    if not isinstance(statement, ast.Expr):
        return None
    if not function.alone(statement):
        return None
    draft = Draft(function)
    draft.remove(statement)
    return draft.fix("take it out", Safety.UNSAFE, "memory that PyTorch holds is not given back to the driver")
