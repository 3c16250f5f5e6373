"""`math.exp(t)` as `t.detach().exp()`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety
from syncscope.model.ops import Op

ON_DEVICE = {"exp", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "tanh", "floor", "ceil"}
EXAMPLES = (
    Example(
        """
        import math
        import torch

        def loss(x: torch.Tensor):
            error = x.square().mean()
            return math.exp(error)  # !
        """,
        """
        import math
        import torch

        def loss(x: torch.Tensor):
            error = x.square().mean()
            return error.detach().exp()
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    call = site.node
    if site.op is not Op.MATH or not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
        return None
    name = (function.dotted(call.func) or "").removeprefix("math.")
    if name not in ON_DEVICE or name in ("floor", "ceil") or site.fact.dtype is not Dtype.FLOAT:
        return None
    draft = Draft(function)
    draft.replace(call, f"{{t}}.detach().{name}()", t=call.args[0])
    return draft.fix(
        "compute it on the device",
        Safety.UNSAFE,
        "it is a tensor of the tensor's own dtype, no Python float; NaN or inf comes where math raises an error",
    )
