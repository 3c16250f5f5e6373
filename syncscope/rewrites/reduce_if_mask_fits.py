"""`x[m].sum()` over all of x, as a suggestion: it is not proved that m has the shape of x, and does not keep rows of it."""

from __future__ import annotations

import ast
from dataclasses import replace

from syncscope.codemod.function import Function
from syncscope.codemod.patterns.over_all import reduced
from syncscope.codemod.proofs import of_rows, same_rank
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Adds, Fix, Safety

ADDS = Adds.ROWS
EXAMPLES = (
    Example(
        """
        import torch

        def worst(x: torch.Tensor, mask: torch.Tensor):
            kept = mask > 0
            return x[kept].max()  # !
        """,
        """
        import torch

        def worst(x: torch.Tensor, mask: torch.Tensor):
            kept = mask > 0
            return x.masked_fill(~kept, float("-inf")).max()
        """,
        Safety.SUGGEST,
        "x: finite[n, m]; mask: finite[n, m]",
    ),
    Example(
        """
        import torch

        def loss(error: torch.Tensor, label: torch.LongTensor):
            kept = label > 0
            return error[kept].mean() if kept.any() else error.sum() * 0  # !
        """,
        """
        import torch

        def loss(error: torch.Tensor, label: torch.LongTensor):
            kept = label > 0
            return torch.where(kept, error, 0.0).sum() / kept.sum().clamp(min=1)
        """,
        Safety.SUGGEST,
        "error: finite[n, m]; label: label[n, m]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    taken = site.node
    if not isinstance(taken, ast.Subscript) or not isinstance(taken.ctx, ast.Load):
        return None
    if same_rank(site, function, taken.slice, taken.value):
        return None
    if site.fact_of(taken.slice).ndim is not None or of_rows(function, taken.slice):  # mostly one, of rows
        return None
    found = reduced(site, function, taken.value, taken.slice, fits=True)
    if found is None:
        return None
    x, m = function.file.text(taken.value), function.file.text(taken.slice)
    return replace(
        found,
        safety=Safety.SUGGEST,
        changes=f"{x} must have the shape of {m}; {found.changes}",
    )
