"""`clip_grad_norm_(..., error_if_nonfinite=True)` with False."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.layout import caught
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

EXAMPLES = (
    Example(
        """
        import torch
        from torch.nn.utils import clip_grad_norm_

        def train(model, loader, optimizer):
            for x in loader:
                model(x).mean().backward()
                clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)  # !
                optimizer.step()
        """,
        """
        import torch
        from torch.nn.utils import clip_grad_norm_

        def train(model, loader, optimizer):
            for x in loader:
                model(x).mean().backward()
                clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=False)
                optimizer.step()
        """,
        Safety.UNSAFE,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    call = site.node
    flag = (
        next((k for k in call.keywords if k.arg == "error_if_nonfinite"), None) if isinstance(call, ast.Call) else None
    )
    if flag is None or caught(function, call):
        return None
    draft = Draft(function)
    draft.replace(flag.value, "False")
    return draft.fix(
        "do not check", Safety.UNSAFE, "a norm that is NaN or inf spoils all gradients and no longer raises an error"
    )
