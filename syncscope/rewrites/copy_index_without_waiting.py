"""`x[i]` with an index of the host as `x[i.to(x.device, non_blocking=True)]`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.listed import TAKEN_OVER
from syncscope.codemod.patterns.numbers import named
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety

EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.cuda()
            order = torch.randperm(len(x))
            print(order)
            return x[order]  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.cuda()
            order = torch.randperm(len(x))
            print(order)
            return x[order.to(x.device, non_blocking=True)]
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch

        def targets(label: torch.Tensor, show):
            box = {"label": label.cuda()}
            order = torch.randperm(8)
            show(order)
            return box["label"][order]  # !
        """,
        """
        import torch

        def targets(label: torch.Tensor, show):
            box = {"label": label.cuda()}
            order = torch.randperm(8)
            show(order)
            return box["label"][order.to(box["label"].device, non_blocking=True)]
        """,
        Safety.UNSAFE,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    taken, index = site.node, site.operand
    if index is None or site.fact_of(index).dtype is not Dtype.INT:
        return None  # of a mask the true elements would be looked for on the device
    if not isinstance(taken, ast.Subscript) or not (named(taken.value) or is_entry(taken.value)):
        return None
    draft = Draft(function)
    draft.replace(index, "{i}.to({x}.device, non_blocking=True)", i=index, x=taken.value)
    return draft.fix(
        "copy the index while the host goes on",
        Safety.UNSAFE,
        f"{TAKEN_OVER}; an index in pinned memory must not be written again before the copy is made",
    )


def is_entry(node: ast.expr) -> bool:
    """Whether this is an entry of a dict that has a name, `target["boxes"]`: written twice, it is not computed twice."""
    match node:
        case ast.Subscript(value=held, slice=ast.Constant(value=str())):
            return named(held)
    return False
