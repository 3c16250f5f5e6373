"""`x.topk(k).values.sum()` with a k of the device: all are sorted, and the first k are summed up."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

EXAMPLES = (
    Example(
        """
        import torch

        def hardest(x: torch.Tensor):
            x = x.flatten()
            k = (x > 0).sum().clamp(max=x.shape[0])
            return x.topk(k).values.sum()  # !
        """,
        """
        import torch

        def hardest(x: torch.Tensor):
            x = x.flatten()
            k = (x > 0).sum().clamp(max=x.shape[0])
            return torch.where(torch.arange(x.shape[-1], device=x.device) < k, x.sort(descending=True).values, 0).sum()
        """,
        Safety.UNSAFE,
        "x: normal[n, m]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    op = function.op(site.node)
    if op is None or op.name != "topk" or len(op.args) != 1 or op.keywords or not isinstance(op.base, ast.Name):
        return None
    values = function.parent(site.node)
    first = isinstance(values, ast.Subscript) and function.constant(values.slice) == 0
    if not first and not (isinstance(values, ast.Attribute) and values.attr == "values"):
        return None
    total = function.parent(function.parent(values) or site.node) if values is not None else None
    reduction = function.op(total)
    if reduction is None or reduction.base is not values or reduction.args or reduction.keywords:
        return None
    if reduction.name not in ("sum", "mean") or (reduction.name == "mean" and site.fact_of(op.base).ndim != 1):
        return None
    assert isinstance(total, ast.expr)
    k = op.args[0]
    draft = Draft(function)
    kept = (
        "torch.where(torch.arange({x}.shape[-1], device={x}.device) < {k}, {x}.sort(descending=True).values, 0).sum()"
    )
    draft.replace(total, f"{kept} / {{k}}" if reduction.name == "mean" else kept, x=op.base, k=k)
    return draft.fix(
        "sort all, and keep the first",
        Safety.UNSAFE,
        "the sum may differ in its last bits, and a k that is larger than the size takes all instead of raising",
    )
