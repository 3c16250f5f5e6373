"""`set_detect_anomaly(True)` taken out: it is off unless somebody switches it on."""

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
            torch.autograd.set_detect_anomaly(True)  # !
            for x in loader:
                model(x).mean().backward()
                optimizer.step()
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
    call = site.node
    if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
        return None
    if not isinstance(call.args[0], ast.Constant) or call.args[0].value is not True:
        return None
    draft = Draft(function)
    statement = function.parent(call)
    if isinstance(statement, ast.Expr):
        draft.remove(statement)
    else:
        draft.replace(call.args[0], "False")
    return draft.fix(
        "switch it off", Safety.UNSAFE, "a gradient that is NaN no longer raises an error that names the operation"
    )
