"""`x[m] = t` with one number of the device as `x.copy_(torch.where(m, t, x))`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.numbers import PROMOTED, number_on_device
from syncscope.codemod.proofs import is_mask, same_rank
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

ROUNDS = True
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
    assign = function.parent(site.node)
    found = seen(function, assign, "{x:name}[{m}] = {t}")
    if found is None or not isinstance(assign, ast.Assign) or assign.targets != [site.node]:
        return None
    if not is_mask(site.fact_of(found["m"])) or not number_on_device(site.fact_of(found["t"])):
        return None
    if not same_rank(site, function, found["m"], found["x"]):
        return None
    draft = Draft(function)
    draft.replace(assign, "{x}.copy_(torch.where({m}, {t}, {x}))", **found)
    return draft.fix("choose the number everywhere", Safety.UNSAFE, PROMOTED, "the work is that of all elements")
