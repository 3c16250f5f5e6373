"""`goal[m, label[m]] = number` as `goal.masked_fill_(...)` where the column is the row's label. The site is either."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.proofs import is_mask, same_rank
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

EXAMPLES = (
    Example(
        """
        import torch

        def loss(scores: torch.Tensor, label: torch.LongTensor):
            goal = torch.zeros_like(scores)
            found = label >= 0
            goal[found, label[found]] = 1.0  # !
            return goal
        """,
        """
        import torch

        def loss(scores: torch.Tensor, label: torch.LongTensor):
            goal = torch.zeros_like(scores)
            found = label >= 0
            goal.masked_fill_(found[:, None] & (label[:, None] == torch.arange(goal.shape[1], device=goal.device)), 1.0)
            return goal
        """,
        Safety.UNSAFE,
        "scores: finite[n, 4]; label: label[n] < 4",
        rule="boolean-mask-read",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    assign = function.statement(site.node)
    target = assign.targets[0] if isinstance(assign, ast.Assign) else None
    if (
        not isinstance(target, ast.Subscript)
        or not isinstance(target.slice, ast.Tuple)
        or len(target.slice.elts) != 2
        or not isinstance(assign, ast.Assign)
        or len(assign.targets) != 1
        or function.constant(assign.value) is None
    ):
        return None
    mask, column = target.slice.elts
    if (
        not is_mask(site.fact_of(mask))
        or not isinstance(column, ast.Subscript)
        or not function.same(column.slice, mask)
        or not same_rank(site, function, mask, column.value)
        or not all(function.pure(n) for n in (mask, column, target.value))
    ):
        return None
    draft = Draft(function)
    draft.replace(
        assign,
        "{x}.masked_fill_({m}[:, None] & ({c}[:, None] == torch.arange({x}.shape[1], device={x}.device)), {v})",
        x=target.value,
        m=mask,
        c=column.value,
        v=assign.value,
    )
    return draft.fix(
        "fill where the column is the row's own",
        Safety.UNSAFE,
        "a column that is out of range is left out instead of raising, and a negative one does not count from the end; "
        "the work is that of all columns",
    )
