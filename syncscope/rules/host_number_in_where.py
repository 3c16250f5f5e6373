"""A number of the host, made a tensor, as a choice of `torch.where`: `torch.where(mask, x, torch.tensor(0.0))`.

Why it waits
------------
Most operations take a tensor of the host without dimensions along as a number; `torch.where` copies it to the device first, and
the host waits for the copy, which comes after everything that was asked for before. A Python number it takes as it is. On the
CPU and on the OpenCL backends nobody waits.

What to do
----------
- Give the number: `torch.where(mask, x, 0.0)`, or `x.masked_fill(~mask, 0.0)`.
- Where the dtype of the tensor is wanted: `x.new_zeros(())`, which is made on the device.

When a fix pays
---------------
In every step: a number is as good, and nothing is copied. In set-up it is only tidier.

Fix safety
----------
Unsafe, because a tensor without dimensions and a Python number are promoted otherwise where the other choice has no dimensions
either.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Safety
from syncscope.rules import Function, Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.WHERE_HOST,)
SEEN_AS = ("aten::_to_copy", "aten::copy_", "aten::to", "aten::where")
REWRITES = ("give_number_to_where",)
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor, mask: torch.BoolTensor):
            return torch.where(mask, torch.tensor(-1.0, dtype=x.dtype), x)  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, mask: torch.BoolTensor):
            return torch.where(mask, -1.0, x)
        """,
        Safety.UNSAFE,
    ),
)


def message(site: Site, view: View) -> str | None:
    host, taken = view.quote(site.operand), view.quote(site.node)
    return f"{host} is on the host: {taken} copies it to the device and waits; a Python number is not copied"


def certain(site: Site, function: Function) -> bool:
    return True  # a number is chosen alike, wherever the mask lives
