"""Writes through a mask, in fixed shapes."""

from __future__ import annotations

import ast

from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example
from syncscope.rules._function import Function
from syncscope.rules._proofs import elementwise, is_mask, same_rank

OF_READS = (
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
    ),
)


def chosen(site: Site, function: Function) -> Fix | None:
    """`x[m] = f(a[m])` as `x = torch.where(m, f(a), x)`. The site is x[m] or any a[m]."""
    assign = function.statement(site.node)
    target = assign.targets[0] if isinstance(assign, ast.Assign) else None
    if (
        not isinstance(target, ast.Subscript)
        or not isinstance(target.value, ast.Name)
        or not isinstance(assign, ast.Assign)
        or len(assign.targets) != 1
        or not is_mask(site.fact_of(target.slice))
        or not same_rank(site, function, target.slice, target.value)
        or not elementwise(site, function, assign.value, target.slice, fits=True)
        or not all(function.pure(n) for n in (assign.value, target.slice))
    ):
        return None
    taken = [n for n in ast.walk(assign.value) if isinstance(n, ast.Subscript) and function.same(n.slice, target.slice)]
    base, value = site.fact_of(target.value), site.fact_of(assign.value)
    if not taken or (base.dtype is not value.dtype and Dtype.UNKNOWN not in (base.dtype, value.dtype)):
        return None
    draft = function.draft()
    whole = draft.swapped(assign.value, {n: n.value for n in taken})
    draft.replace(assign, "{x} = torch.where({m}, {whole}, {x})", x=target.value, m=target.slice, whole=whole)
    return draft.fix(
        "compute all, and choose",
        Safety.UNSAFE,
        f"{target.value.id} is a new tensor: other views of the old one keep their values; all must be of its dtype and of "
        "the mask's shape, and "
        "what the mask leaves out must be finite or its gradient is NaN",
    )


def one_column(site: Site, function: Function) -> Fix | None:
    """`goal[m, label[m]] = number`: the elements whose column is their row's label. The site is either selection."""
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
    draft = function.draft()
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
