"""`x.topk(k).values.sum()` with a k of the device: all are sorted, and the first k are summed up."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.layout import caught
from syncscope.codemod.pattern import around, seen
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Adds, Fix, Safety

ADDS = Adds.ROWS
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
    of, call = seen(function, site.node, "{x:name}.topk({k})"), site.node
    if of is None or not isinstance(call, ast.Call) or caught(function, call):
        return None
    values = around(function, call, "{it}.values", "{it}[0]")
    mean = around(function, values.node, "{it}.mean()") if values is not None else None
    total = mean or (around(function, values.node, "{it}.sum()") if values is not None else None)
    if total is None or (mean is not None and site.fact_of(of["x"]).ndim != 1):
        return None
    draft = Draft(function)
    kept = (
        "torch.where(torch.arange({x}.shape[-1], device={x}.device) < {k}, {x}.sort(descending=True).values, 0).sum()"
    )
    draft.replace(total.node, f"{kept} / {{k}}" if mean is not None else kept, **of)
    return draft.fix(
        "sort all, and keep the first",
        Safety.UNSAFE,
        "the sum may differ in its last bits, and a k that is larger than the size takes all instead of raising",
    )
