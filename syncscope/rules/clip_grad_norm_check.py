"""`clip_grad_norm_(..., error_if_nonfinite=True)`.

Why it waits
------------
To raise an error for a norm that is NaN or inf, the host reads it, and waits until the device has computed all gradients.

Fix safety
----------
Unsafe without the check, because a norm that is not finite then makes all gradients NaN or zero and nothing is said.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View

FAMILY = Family.LIBRARY
SEVERITY = Severity.WARNING
OPS = ("clip_grad_norm",)
SEEN_AS = ("aten::is_nonzero", "aten::item", "aten::_local_scalar_dense")
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


def message(site: Site, view: View) -> str | None:
    return "error_if_nonfinite=True reads the norm of all gradients, and waits for it"


def rewrite(site: Site, function: Function) -> Fix | None:
    call = site.node
    flag = (
        next((k for k in call.keywords if k.arg == "error_if_nonfinite"), None) if isinstance(call, ast.Call) else None
    )
    if flag is None:
        return None
    draft = function.draft()
    draft.replace(flag.value, "False")
    return draft.fix(
        "do not check", Safety.UNSAFE, "a norm that is NaN or inf spoils all gradients and no longer raises an error"
    )
