"""A bool tensor on the device as an index: `x[mask]`.

Why it waits
------------
The result has a row for each true element of the mask. The host must know how many there are to make it, so it waits until
the device has computed the mask and everything before it. The gradient of `x[mask]` adds into the true elements and looks for
them again: on CUDA the backward pass waits once more. Rows that are found once spare that, too.

What to do
----------
- What ends in a number (a sum, a mean, a loss) needs no selection: compute all, and leave out with `where`, `masked_fill`,
  `ignore_index` or a weight of zero. Not with `x * mask`: NaN times zero is NaN.
- What goes on as rows (a head that runs on the foreground only) is a true dependency. Look for the rows once,
  `rows = mask.nonzero().squeeze(1)`, and use them wherever the mask was used: one wait, not one for each use.
- Several lines of one mask that end in a number can be one comprehension: the notation keeps the shape, `ocl` runs it as one or
  two kernels, other devices through torch. It is offered beside other fixes, or alone.
- Where a bound is known, keep a fixed number of rows: `topk(k)` of the mask, or `nonzero_static(mask, size=k)`, and carry
  which of them count.

When a fix pays
---------------
Where most rows are kept, or what follows is cheap for each row: all rows are computed then. Not where few of many rows are
kept and a network or a product of matrices follows: the selection saves more than the wait costs. Nor once an epoch.

Fix safety
----------
Most selections end in a reduction, and that can be computed over everything with a neutral value where the mask is false.
What differs is said with each fix: a sum taken in another order differs in its last bits; an empty selection gives NaN from
`mean` as before, but -inf from `max` instead of an error; what is left out must be finite, or gradients become NaN where
indexing gave zero. `any` and `all` are safe. A loss with `ignore_index` is the same loss. Where one mask serves several
times it is enough to look for its true elements once: safe where all shapes are known to fit. The fixed shape does the work
of all rows: if a mask keeps very few and the work is heavy, one wait may be cheaper.
"""

from __future__ import annotations

from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Safety
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.MASK_READ,)
SEEN_AS = ("aten::index", "aten::nonzero")
REWRITES = (
    "index_before_steps",
    "ignore_in_cross_entropy",
    "sum_losses_by_mask",
    "reduce_with_mask",
    "choose_with_where",
    "index_once",
    "reduce_if_mask_fits",
    "write_comprehension",
)
EXAMPLES = (
    Example(
        """
        import torch
        import torch.nn.functional as F

        IGNORE = -1

        def loss(logits: torch.Tensor, target: torch.LongTensor):
            keep = target != IGNORE
            return F.cross_entropy(logits[keep], target[keep])  # !
        """,
        """
        import torch
        import torch.nn.functional as F

        IGNORE = -1

        def loss(logits: torch.Tensor, target: torch.LongTensor):
            return F.cross_entropy(logits.flatten(0, -2), target.flatten(), ignore_index=IGNORE)
        """,
        Safety.UNSAFE,
        "logits: finite[n, 4]; target: label[n] < 4",
    ),
)


def message(site: Site, view: View) -> str | None:
    mask, taken = view.quote(site.operand), view.quote(site.node)
    return f"{mask} is a bool tensor on the device: {taken} waits to learn how many rows it keeps"
