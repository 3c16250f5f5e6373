"""`clip_grad_norm_(..., error_if_nonfinite=True)`.

Why it waits
------------
To raise an error for a norm that is NaN or inf, the host reads it, and waits until the device has computed all gradients.

What to do
----------
Leave `error_if_nonfinite` at False, keep the norm that is given back, and look at it where you log: without the check a norm
that is not finite makes all gradients NaN or zero, and nothing is said.

When a fix pays
---------------
In every step: the check waits for the whole backward pass, just before the optimizer could be queued. Not while you look for
the step at which gradients blow up.
"""

from __future__ import annotations

import ast

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.CLIP_GRAD_NORM,)
SEEN_AS = ("aten::is_nonzero", "aten::item", "aten::_local_scalar_dense")
REWRITES = ()
EXAMPLES = (
    Example(
        """
        import torch

        def step(model: torch.nn.Module, optimizer):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)  # !
            optimizer.step()
        """,
        instead="""
        import torch

        def step(model: torch.nn.Module, optimizer):
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return norm
        """,
    ),
)


def message(site: Site, view: View) -> str | None:
    default = ""
    match site.node:
        case ast.Call(func=ast.Attribute(attr="clip_gradients"), keywords=keywords):
            default = "" if any(k.arg == "error_if_nonfinite" for k in keywords) else ", Fabric's default,"
    return f"error_if_nonfinite=True{default} reads the norm of all gradients, and waits for it"
