"""`nonzero`, `argwhere` or one-argument `where` of a tensor on the device.

Why it waits
------------
The result has a row for each nonzero element. The host must know how many there are to make it, so it waits until the
device has computed everything that was asked for before.

What to do
----------
- Positions that only say where to write one number, or what to sum up: the mask itself says it, in a fixed shape.
- The first position: `mask.int().argmax()`. How many there are: `mask.sum()`, a tensor that stays on the device.
- At most k of them: `nonzero_static(mask, size=k)`, or `topk` of the mask.
- A mean over what is kept: weights of 0 and 1, `(loss * kept).sum() / kept.sum().clamp(min=1)`; where nothing is kept and
  another value is wanted, `torch.where(kept.sum() > 0, ..., loss.mean())` chooses. The example at the end has both.
- Positions of which the rows are used for more: look once, and use the positions wherever the mask was used.

When a fix pays
---------------
Where positions are used to write, to count or to sum, which a mask does as well without them. Not where few of many rows are
kept and each is dear, and not where the count itself is what is wanted.

Fix safety
----------
Indices that only serve to write one number are not needed: `x[mask] = number` is filled in place without a wait, and so is
`x.masked_fill_(mask, number)`: the same values and gradients. Safe where the shapes are known to fit and the number of
dimensions is known, else unsafe, because a tensor without dimensions is then filled instead of raising. Where only the count
is used, `count_nonzero` gives it as a tensor that stays on the device: unsafe, because code that needs a Python int will then
read it. The first k rows, `nonzero(m)[:k]`, can be had in a fixed shape from `nonzero_static`: suggested, not applied, as
rows that are missing hold -1. One class column of each row, `loss[rows, label[rows]] = f(...)`, can be computed for all
columns and chosen: unsafe, and more work where few rows are kept.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Safety
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.NONZERO, Op.ARGWHERE, Op.WHERE)
SEEN_AS = ("aten::nonzero", "aten::argwhere", "aten::nonzero_numpy")
REWRITES = (
    "fill_by_mask",
    "count_on_device",
    "first_by_argmax",
    "take_fixed_number",
    "ignore_in_cross_entropy",
    "use_mask_not_positions",
)
EXAMPLES = (
    Example(
        """
        import torch

        def loss(target: torch.Tensor):
            target = target.flatten(1).clone()
            rows, columns = torch.nonzero(target == 9, as_tuple=True)  # !
            target[rows, columns] = -1
            return target
        """,
        """
        import torch

        def loss(target: torch.Tensor):
            target = target.flatten(1).clone()
            target.masked_fill_(target == 9, -1)
            return target
        """,
        Safety.UNSAFE,
        "target: label[n, h, w]",
    ),
    Example(
        """
        import torch

        def forward(scores: torch.Tensor):
            return torch.where(scores > 0, scores, 0.0)
        """
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, label: torch.LongTensor):
            rows = torch.nonzero(label > 0).squeeze(1)  # !
            return x[rows].sum(), x[rows].cos()
        """
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, label: torch.LongTensor):
            rows = torch.nonzero(label > 0).squeeze(1)  # !
            return x[rows].sum() if len(rows) > 3 else x
        """
    ),
    Example(
        """
        import torch

        def loss_of_hard(loss: torch.Tensor, p: torch.Tensor):
            hard = torch.nonzero(p < 0.7).squeeze(1)  # !
            if len(hard) == 0:
                return loss.mean()
            return loss[hard].mean()
        """,
        instead="""
        import torch

        def loss_of_hard(loss: torch.Tensor, p: torch.Tensor):
            hard = (p < 0.7).to(loss.dtype)
            kept = hard.sum()
            return torch.where(kept > 0, (loss * hard).sum() / kept.clamp(min=1), loss.mean())
        """,
        inputs="loss: finite[n + 1]; p: finite[n + 1]",
    ),
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.node)} waits to learn how many elements are nonzero"
