"""`x[m] = t` with one number of the device as `x.copy_(torch.where(m, t, x))`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.numbers import PROMOTED, number_on_device
from syncscope.codemod.proofs import is_mask, same_rank
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x * 2
            x[x < 0] = x.abs().max()  # !
            return x
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = x * 2
            x.copy_(torch.where(x < 0, x.abs().max(), x))
            return x
        """,
        Safety.UNSAFE,
        "x: normal[n + 1, m + 1]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    """`x[m] = t` with one number_on_device of the device as `x.copy_(torch.where(m, t, x))`."""
    target = site.node
    assign = function.parent(target)
    if not isinstance(assign, ast.Assign) or assign.targets != [target] or not isinstance(target, ast.Subscript):
        return None
    mask, base, value = target.slice, target.value, assign.value
    if not is_mask(site.fact_of(mask)) or not number_on_device(site.fact_of(value)) or not isinstance(base, ast.Name):
        return None
    if not same_rank(site, function, mask, base):
        return None
    draft = Draft(function)
    draft.replace(assign, "{x}.copy_(torch.where({m}, {t}, {x}))", x=base, m=mask, t=value)
    return draft.fix("choose the number everywhere", Safety.UNSAFE, f"{PROMOTED}; the work is that of all elements")
