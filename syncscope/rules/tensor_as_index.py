"""A 0-dimensional integer tensor of the device as an index: `x[i]`.

Why it waits
------------
PyTorch turns such an index into a Python int to give a view of that row, so the host waits until the device has computed the
index and everything before it. An index of one dimension is gathered on the device.

What to do
----------
- Gather: `x.index_select(0, i.view(1)).squeeze(0)`, or `x.gather(...)` for one index a row.
- Of a loop over indices, `for i in order: x[i]`: one `x[order]` for all.

Fix safety
----------
Unsafe, because the row is then a copy and no view of the tensor, and because an index that is out of range is found by the
device, later.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View
from syncscope.rules._proofs import is_mask

FAMILY = Family.READ
SEVERITY = Severity.WARNING
OPS = ("scalar_index",)
SEEN_AS = ("aten::item", "aten::_local_scalar_dense")
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor, scores: torch.Tensor):
            best = scores.argmax()
            return x[best]  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, scores: torch.Tensor):
            best = scores.argmax()
            return x[best.unsqueeze(0)].squeeze(0)
        """,
        Safety.UNSAFE,
        "x: float[n, m]; scores: finite[n]",
    ),
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


def rewrite(site: Site, function: Function) -> Fix | None:
    if site.confidence < 2:  # a guess is no ground to change code on
        return None
    taken = site.node
    if (
        not isinstance(taken, ast.Subscript)
        or not isinstance(taken.ctx, ast.Load)
        or isinstance(taken.slice, ast.Tuple)
    ):
        return None
    index = site.fact_of(taken.slice)
    if (
        not index.is_tensor
        or index.ndim != 0
        or index.dtype is not Dtype.INT
        or not site.fact_of(taken.value).is_tensor
    ):
        return None
    draft = function.draft()
    draft.replace(taken, "{x}[{i}.unsqueeze(0)].squeeze(0)", x=taken.value, i=taken.slice)
    return draft.fix(
        "gather the row on the device",
        Safety.UNSAFE,
        "it is a copy, no view, and an index out of range is found later, by the device",
    )
