"""`x[m]` with a mask that is known to have k true elements as `x[torch.nonzero_static(m, size=k)[:, 0]]`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.known_counts import counted_beforehand, said_of
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.flatten()
            _, best = x.topk(3)
            chosen = torch.zeros_like(x, dtype=torch.bool)
            chosen[best] = True
            return x[chosen] * 2  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.flatten()
            _, best = x.topk(3)
            chosen = torch.zeros_like(x, dtype=torch.bool)
            chosen[best] = True
            return x[torch.nonzero_static(chosen, size=3)[:, 0]] * 2
        """,
        Safety.SUGGEST,
        "x: finite[3 + n]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    taken = site.node
    if not isinstance(taken, ast.Subscript) or not isinstance(taken.slice, ast.Name):
        return None
    found = counted_beforehand(site, function, taken.slice)
    if found is None or found[0] is found[1]:
        return None
    draft = Draft(function)
    draft.replace(taken.slice, "torch.nonzero_static({m}, size={k})[:, 0]", m=taken.slice, k=found[0])
    return draft.fix("say how many rows it keeps", Safety.SUGGEST, said_of(function, *found))
