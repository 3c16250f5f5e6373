"""`x[[0, 2]]` as `torch.stack((x[0], x[2]))`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

FEW = 8  # rows: more are slower to take one by one
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
    taken = site.node
    if (
        not isinstance(taken, ast.Subscript)
        or not isinstance(taken.ctx, ast.Load)
        or not isinstance(taken.slice, ast.List)
    ):
        return None
    rows = [function.constant(e) for e in taken.slice.elts]
    whole = [r for r in rows if isinstance(r, int)]
    if len(whole) != len(rows) or not 1 <= len(rows) <= FEW or not isinstance(taken.value, ast.Name):
        return None
    draft = Draft(function)
    each = ", ".join(f"{{x}}[{row}]" for row in whole) + ("," if len(whole) == 1 else "")
    draft.replace(taken, f"torch.stack(({each}))", x=taken.value)
    return draft.fix("stack the rows", Safety.UNSAFE, "an index that is out of range is reported in other words")
