"""A tensor of the host as an index into a tensor of the device: `x[torch.arange(n)]`.

Why it waits
------------
The index is copied to the device where the other tensor lives, and the host waits for the copy, which comes after everything
that was asked for before. Nothing in the code says so, and it happens again at every use. On the CPU and on the OpenCL
backends nobody waits.

What to do
----------
- Make the index where it is used: `torch.arange(n, device=x.device)`, `torch.randperm(n, device=x.device)`.
- One that stays the same is a buffer of the module, and moves with it: `self.register_buffer("order", order)`.
- One that only the host knows is copied without waiting: `order.to(x.device, non_blocking=True)`, at best from pinned memory.
- One row: `x[3]` needs no tensor.

Fix safety
----------
Unsafe, because an index in pinned memory that is written again before the copy is made is copied as it then is.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View
from syncscope.rules.number_at_positions import named

FAMILY = Family.COPY
SEVERITY = Severity.WARNING
OPS = ("index_host",)
SEEN_AS = ("aten::_to_copy", "aten::copy_", "aten::to", "aten::index", "aten::index_put_")
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.cuda()
            order = torch.randperm(len(x))
            return x[order]  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.cuda()
            order = torch.randperm(len(x))
            return x[order.to(x.device, non_blocking=True)]
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.cuda()
            order = torch.randperm(len(x), device=x.device)
            return x[order] + x[torch.tensor(0)]
        """,
    ),
)


def message(site: Site, view: View) -> str | None:
    index, taken = view.quote(site.operand), view.quote(site.node)
    return f"{index} is on the host: {taken} copies it to the device first, and the host waits for the copy"


def rewrite(site: Site, function: Function) -> Fix | None:
    taken, index = site.node, site.operand
    if site.confidence < 2 or index is None or site.fact_of(index).dtype is not Dtype.INT:
        return None  # of a mask the true elements would be looked for on the device
    if not isinstance(taken, ast.Subscript) or not named(taken.value):
        return None
    draft = function.draft()
    draft.replace(index, "{i}.to({x}.device, non_blocking=True)", i=index, x=taken.value)
    return draft.fix(
        "copy the index while the host goes on",
        Safety.UNSAFE,
        "an index in pinned memory must not be written again before the copy is made",
    )
