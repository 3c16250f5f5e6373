"""A 0-dimensional integer tensor of the device as an index: `x[i]`.

Why it waits
------------
PyTorch turns such an index into a Python int to give a view of that row, so the host waits until the device has computed the
index and everything before it. An index of one dimension is gathered on the device.

What to do
----------
- Gather: `x.index_select(0, i.view(1)).squeeze(0)`, or `x.gather(...)` for one index a row.
- Of a loop over indices, `for i in order: x[i]`: one `x[order]` for all.
- Of counts, `for t, p in zip(label, guess): counts[t, p] += 1`: one `counts.index_put_((label, guess), one, accumulate=True)`
  for all, `one` a tensor on the device like `counts`, which has to be there, too. `torch.bincount(label, minlength=n)` counts
  at once, but waits once.

When a fix pays
---------------
In every step and in loops over positions: `index_select` or `gather` take the tensor itself. Not where the number is needed
on the host for something else anyway.

Fix safety
----------
Unsafe, because the row is then a copy and no view of the tensor, and because an index that is out of range is found by the
device, later.
"""

from __future__ import annotations

import ast

from syncscope.codemod.proofs import is_mask
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.rules import Op, Severity, View

SEVERITY = Severity.WARNING
OPS = (Op.SCALAR_INDEX,)
SEEN_AS = ("aten::item", "aten::_local_scalar_dense")
REWRITES = ("gather_row",)
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor, scores: torch.Tensor):
            return x[scores.argmax(dim=1)]
        """
    ),
)


def message(site: Site, view: View) -> str | None:
    if isinstance(site.operand, ast.Subscript) and rows_of(site, site.operand.slice):
        return None
    return f"{view.quote(site.operand)} is one number on the device: {view.quote(site.node)} waits to read it"


def rows_of(site: Site, index: ast.expr) -> bool:
    """Whether an index takes several elements: a slice or a mask. What it takes is then no single number."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(isinstance(part, ast.Slice) or is_mask(site.fact_of(part)) for part in parts)
