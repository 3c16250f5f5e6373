"""`x[i]` with one number of the device as `x[i[None]][0]`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.layout import caught
from syncscope.codemod.mixed import mixed
from syncscope.codemod.writes import written_after
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety

EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor, scores: torch.Tensor):
            best = scores.argmax()
            return x[best]  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, scores: torch.Tensor):
            best = scores.argmax()
            return x[best[None]][0]
        """,
        Safety.UNSAFE,
        "x: float[n, m]; scores: finite[n]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    taken = site.node
    if (
        not isinstance(taken, ast.Subscript)
        or not isinstance(taken.ctx, ast.Load)
        or isinstance(taken.slice, ast.Tuple)
    ):
        return None
    index = site.fact_of(taken.slice)
    if (
        not index.is_tensor
        or index.ndim != 0
        or index.dtype is not Dtype.INT
        or not site.fact_of(taken.value).is_tensor
        or mixed(function, taken.slice)
        or caught(function, taken)
        or written(function, taken)
    ):
        return None
    draft = Draft(function)
    draft.replace(taken, "{x}[{i}[None]][0]", x=taken.value, i=taken.slice)
    return draft.fix(
        "gather the row on the device",
        Safety.UNSAFE,
        "it is a copy, no view, and an index out of range is found later, by the device",
    )


def written(function: Function, taken: ast.Subscript) -> bool:
    """Whether the row is written in place, or what has its name is: a copy of it would be."""
    around = [n for n in function.around(taken) if isinstance(n, ast.Attribute)][:1]
    if any(n.attr.endswith("_") and isinstance(function.parent(n), ast.Call) for n in around):
        return True
    match function.statement(taken):
        case ast.Assign(targets=[ast.Name() as name]) as statement:
            return written_after(function, name, statement)
    return False
