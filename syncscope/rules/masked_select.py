"""`masked_select` of a tensor on the device, or `combinations`, which is built on it.

Why it waits
------------
The result has one element for each true element of the mask. The host must know how many there are to make it, so it waits
until the device has computed the mask and everything before it.

What to do
----------
`x.masked_select(m)` is `x[m]` for a mask that is spread over `x`: what boolean-mask-read says of it holds here.
A loss of two selections by one mask, `mse_loss(p.masked_select(m), t.masked_select(m))`, is a mean under that mask: where p has
the shape of m it is `(F.mse_loss(p, t, reduction="none") * m).sum() / m.sum()`, one mask for all such losses and no wait. What
is left out must be finite then.

When a fix pays
---------------
As for `boolean-mask-read`: where most elements are kept or what follows is cheap for each. Not where few are kept and each is
dear.

Fix safety
----------
Where only a sum, a mean or an extreme of what was selected is used, it can be computed over everything with a neutral value
where the mask is false. What differs is said with each fix: sums differ in their last bits; an empty selection gives -inf from
`max` instead of an error.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.MASKED_SELECT, Op.COMBINATIONS)
SEEN_AS = ("aten::masked_select", "aten::combinations")
REWRITES = ("reduce_masked_select",)
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            return x.masked_select(x > 0)  # !
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} waits to learn how many elements are selected"
