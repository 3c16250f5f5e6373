"""A number of the host, made a tensor, as a choice of `torch.where`: `torch.where(mask, x, torch.tensor(0.0))`.

Why it waits
------------
Most operations take a tensor of the host without dimensions along as a number; `torch.where` copies it to the device first, and
the host waits for the copy, which comes after everything that was asked for before. A Python number it takes as it is. On the
CPU and on the OpenCL backends nobody waits.

What to do
----------
- Give the number: `torch.where(mask, x, 0.0)`, or `x.masked_fill(~mask, 0.0)`.
- Where the dtype of the tensor is wanted: `x.new_full((), 0.0)`, which is made on the device.

Fix safety
----------
Unsafe, because a tensor without dimensions and a Python number are promoted otherwise where the other choice has no dimensions
either.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View
from syncscope.rules.number_at_positions import written_out

FAMILY = Family.COPY
SEVERITY = Severity.WARNING
OPS = ("where_host",)
SEEN_AS = ("aten::_to_copy", "aten::copy_", "aten::to", "aten::where")
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor, mask: torch.BoolTensor):
            x = x.cuda()
            return torch.where(mask, x, torch.tensor(0.5)) + torch.tensor(0.5)  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, mask: torch.BoolTensor):
            x = x.cuda()
            return torch.where(mask, x, 0.5) + torch.tensor(0.5)
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, mask: torch.BoolTensor):
            return torch.where(mask, torch.tensor(-1.0, dtype=x.dtype), x)  # !
        """,
    ),
)


def message(site: Site, view: View) -> str | None:
    host, taken = view.quote(site.operand), view.quote(site.node)
    return f"{host} is on the host: {taken} copies it to the device and waits; a Python number is not copied"


def rewrite(site: Site, function: Function) -> Fix | None:
    made = site.operand
    if site.confidence < 2 or not isinstance(made, ast.Call) or len(made.args) != 1:
        return None
    if function.dotted(made.func) not in ("torch.tensor", "torch.as_tensor", "torch.scalar_tensor"):
        return None
    if any(k.arg != "dtype" for k in made.keywords) or not written_out(made.args[0], function):
        return None
    draft = function.draft()
    draft.replace(made, "{value}", value=made.args[0])
    return draft.fix(
        "give the number",
        Safety.UNSAFE,
        "where the other choice has no dimensions, the result has its dtype and not that of the number's tensor",
    )
