"""A tensor of the device where a Python number is taken: `x.add(y, alpha=t)`, `x.addcmul(a, b, value=t)`.

Why it waits
------------
Such an argument is a number of the host: PyTorch reads it with `.item()`, and waits until the device has computed it and
everything before it. `masked_fill` takes a tensor as its value and reads it all the same, and `clamp` reads a bound that is a
tensor where the other one is a number. A tensor of the host without dimensions is no wait there: CUDA takes it for a number.

When a fix pays
---------------
In every step: writing the product out is one more small kernel, and no wait. Not in set-up.

Fix safety
----------
Where the tensor is made of a number, `masked_fill` takes that: unsafe, because the tensor's dtype may have rounded it.
`torch.where` chooses between two tensors and reads none, and each of two bounds can be clamped alone: unsafe, because dtypes
are then promoted. A product is written out by hand, `x + t * y`: two roundings take the place of one, and gradients flow to
the factor, too.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.SCALAR_SLOT,)
SEEN_AS = ("aten::item", "aten::_local_scalar_dense")
REWRITES = ("choose_or_clamp_on_device",)
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            rate = y.detach().sigmoid().mean()
            return torch.add(x, y, alpha=rate)  # !
        """,
        inputs="x: finite[n]; y: finite[n]",
        instead="""
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            rate = y.detach().sigmoid().mean()
            return x + rate * y
        """,
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.operand)} is a tensor where a Python number is taken: {view.quote(site.node)} waits to read it"
