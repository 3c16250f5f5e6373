"""`x[[0, 2]]` as `torch.stack((x[0], x[2]))`.

It waits for code like ultralytics' `loss.py`: `x[[0, 1]]` of a few rows.
"""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

FEW = 4  # rows: more of them read better as a list
LONG = True
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.relu()
            return x[[2, 0]]  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.relu()
            return torch.stack((x[2], x[0]))
        """,
        Safety.UNSAFE,
        "x: finite[n + 3, m]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    match site.node:
        case ast.Subscript(value=ast.Name() as x, slice=ast.List(elts=indices), ctx=ast.Load()) as taken:
            whole = [r for e in indices if isinstance(r := function.constant(e), int)]
        case _:
            return None
    if len(whole) != len(indices) or not 1 <= len(whole) <= FEW:
        return None
    draft = Draft(function)
    each = ", ".join(f"{{x}}[{row}]" for row in whole) + ("," if len(whole) == 1 else "")
    draft.replace(taken, f"torch.stack(({each}))", x=x)
    return draft.fix("stack the rows", Safety.UNSAFE, "an index that is out of range is reported in other words")
