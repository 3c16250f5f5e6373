"""`x[:, [1, 2, 3]]` as `x[:, 1:4]`, which is a view: there is no index to copy."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

COMPILES = True
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.relu()
            y = torch.zeros_like(x)
            y[:, [0, 2]] = x[:, [1, 2]] * 2  # !
            return y, x[..., [0, 1, 2]].sum()  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.relu()
            y = torch.zeros_like(x)
            y[:, :3:2] = x[:, 1:3] * 2
            return y, x[..., :3].sum()
        """,
        Safety.UNSAFE,
        "x: finite[n, m + 3]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    match site.node:
        case ast.Subscript(value=ast.Name() as x, slice=ast.Tuple(elts=parts)) as taken:
            pass
        case _:
            return None
    lists = [part for part in parts if isinstance(part, ast.List)]
    if len(lists) != 1 or not all(part is lists[0] or keeps_its_place(part) for part in parts):
        return None
    even = evenly(function, lists[0])
    if even is None:
        return None
    draft = Draft(function)
    index = ", ".join(even if part is lists[0] else ast.unparse(part) for part in parts)
    draft.replace(taken, f"{{x}}[{index}]", x=x)
    changes = "an index that is out of range is left out, not reported"
    if isinstance(taken.ctx, ast.Load):
        changes = f"it shares the memory of {x.id}, so neither may be written later; {changes}"
    return draft.fix("take them by a slice", Safety.UNSAFE, changes)


def keeps_its_place(part: ast.expr) -> bool:
    """Whether this part of an index is a slice, an ellipsis or a new dimension, beside which a list stays where it is."""
    return isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value in (None, ...))


def evenly(function: Function, listed: ast.List) -> str | None:
    """Positions that rise by equal steps, as a slice."""
    at = [whole for each in listed.elts if isinstance(whole := function.constant(each), int)]
    if len(at) != len(listed.elts) or len(at) < 2 or at[0] < 0:
        return None
    step = at[1] - at[0]
    if step < 1 or at != list(range(at[0], at[-1] + 1, step)):
        return None
    return f"{at[0] or ''}:{at[-1] + 1}" + (f":{step}" if step > 1 else "")
