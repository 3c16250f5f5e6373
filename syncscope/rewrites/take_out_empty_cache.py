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
    gone: ast.stmt = statement
    match function.parent(statement):
        case ast.If(test=test, orelse=[]) as outer if (
            len(outer.body) == 1
        ):  # with the condition, which nobody else needs
            if not function.pure(test) or function.is_elif(outer) or not function.alone(outer):
                return None
            gone = outer
    if len(function.block(gone)) == 1:  # what there is for this alone stays: a function that is called so
        return None
    draft = Draft(function)
    draft.remove(gone)
    return draft.fix("take it out", Safety.UNSAFE, "memory that PyTorch holds is not given back to the driver")
