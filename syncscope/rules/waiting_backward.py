"""A backward pass through `x[mask]`, or through what a tensor of the host picks.

Why it waits
------------
The gradient of `x[mask]` is added into the elements that were picked. The backward pass keeps the mask, not the positions, and
asks the device for them again: the host waits in `loss.backward()` as it did in the selection. A tensor of the host that picks,
`x[torch.arange(n), best]`, is copied to the device once more, with the same wait.

What to do
----------
Mend the selection, and its gradient no longer waits either: `torch.where` or a weight of zero in place of `x[mask]`; the
positions of one `nonzero` where several tensors are picked from; `device=x.device` where the positions are made.

When a fix pays
---------------
Together with the selection: a step waits in both passes. Not for the backward pass alone, which cannot be written otherwise.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.NOTE
OPS = (Op.BACKWARD,)
SEEN_AS = ()
REWRITES = ()
EXAMPLES = (
    Example(
        """
        import torch

        def train_step(model, x: torch.Tensor, keep: torch.BoolTensor):
            out = model(x)
            loss = out[keep].mean()
            loss.backward()  # !
        """,
        instead="""
        import torch

        def train_step(model, x: torch.Tensor, keep: torch.BoolTensor):
            out = model(x)
            loss = torch.where(keep, out, 0).sum() / keep.sum()
            loss.backward()
        """,
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} waits: {site.fact.provenance}"
