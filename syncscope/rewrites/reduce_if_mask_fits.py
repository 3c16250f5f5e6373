"""`x[m].sum()` over all of x, as a suggestion: it is not proved that m has the shape of x, and does not keep rows of it.

Where a statement can stand before it, m is given the shape of x first, which holds for both.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from syncscope.codemod.function import Function
from syncscope.codemod.patterns.over_all import reduced
from syncscope.codemod.proofs import of_rows, same_rank
from syncscope.codemod.text import CannotRewrite
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Adds, Fix, Safety

ADDS = Adds.ROWS
LOCAL = True
TOGETHER = True
ROUNDS = True
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
            kept_of_all = kept.reshape(kept.shape + (1,) * (x.dim() - kept.dim())).expand_as(x)
            return x.masked_fill(~kept_of_all, float("-inf")).max()
        """,
        Safety.SUGGEST,
        "x: finite[n, m]; mask: finite[n, m]",
    ),
    Example(
        """
        import torch

        def loss(error: torch.Tensor, mask: torch.Tensor):
            kept = mask > 0
            error = error[kept].mean()  # !
            return error
        """,
        """
        import torch

        def loss(error: torch.Tensor, mask: torch.Tensor):
            kept = mask > 0
            kept_of_all = kept.reshape(kept.shape + (1,) * (error.dim() - kept.dim())).expand_as(error)
            error = torch.where(kept_of_all, error, 0.0).sum() / kept_of_all.sum()
            return error
        """,
        Safety.SUGGEST,
        "error: finite[n, m, 3]; mask: finite[n, m]",
    ),
    Example(
        """
        import torch

        def loss(error: torch.Tensor, mask: torch.Tensor):
            kept = mask > 0
            return 2 * error.square()[kept].mean()  # !
        """,
        """
        import torch

        def loss(error: torch.Tensor, mask: torch.Tensor):
            kept = mask > 0
            return 2 * (torch.where(kept, error.square(), 0.0).sum() / kept.sum())
        """,
        Safety.SUGGEST,
        "error: finite[n, m]; mask: finite[n, m]",
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
            kept_of_all = kept.reshape(kept.shape + (1,) * (error.dim() - kept.dim())).expand_as(error)
            return torch.where(kept_of_all, error, 0.0).sum() / kept_of_all.sum().clamp(min=1)
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
    try:
        found = reduced(site, function, taken.value, taken.slice, fits=True, spread=True)
    except CannotRewrite:  # no statement can stand before it
        found = None
    if found is not None:
        return replace(found, safety=Safety.SUGGEST, hint=True)  # of any shape: nobody likes to read that
    found = reduced(site, function, taken.value, taken.slice, fits=True)
    if found is None:
        return None
    x, m = function.file.text(taken.value), function.file.text(taken.slice)
    return replace(
        found,
        safety=Safety.SUGGEST,
        terms=(f"{x} must have the shape of {m}", *found.terms),
    )
