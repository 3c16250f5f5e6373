"""A tensor of the device given to numpy or to `math`: `.numpy()`, `np.asarray(t)`, `np.mean(t)`, `math.exp(t)`.

Why it waits
------------
numpy and math work on the host's memory: the values are copied there, and the host waits until the device has computed them and
everything before them.

What to do
----------
- Most of numpy has a name in torch: `np.mean(t)` is `t.mean()`, `np.linalg.norm(t)` is `t.norm()`, `np.random.choice` a
  `torch.randint` on the device.
- Metrics in numpy or scikit-learn: collect on the device, and cross once after the loop.

Fix safety
----------
What `math` does with one number, the tensor's own method does on the device. Unsafe, because the result is a tensor of the
tensor's dtype and no Python float, and because NaN or inf comes where `math` raises an error.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View

FAMILY = Family.READ
SEVERITY = Severity.WARNING
OPS = ("numpy", "asarray", "math")
SEEN_AS = ("aten::_to_copy", "aten::copy_", "aten::item", "aten::_local_scalar_dense")
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
    Example(
        """
        import numpy as np
        import torch

        def forward(x: torch.Tensor):
            return np.asarray(x.cuda())  # !
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} works on the host: it waits for {view.quote(site.operand)}"


def rewrite(site: Site, function: Function) -> Fix | None:
    if site.confidence < 2:  # a guess is no ground to change code on
        return None
    call = site.node
    if site.op != "math" or not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
        return None
    name = (function.dotted(call.func) or "").removeprefix("math.")
    if name not in ON_DEVICE or name in ("floor", "ceil") or site.fact.dtype is not Dtype.FLOAT:
        return None
    draft = function.draft()
    draft.replace(call, f"{{t}}.detach().{name}()", t=call.args[0])
    return draft.fix(
        "compute it on the device",
        Safety.UNSAFE,
        "it is a tensor of the tensor's own dtype, no Python float; NaN or inf comes where math raises an error",
    )
