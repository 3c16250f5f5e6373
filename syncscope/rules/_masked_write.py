"""Writes through a mask, in fixed shapes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example
from syncscope.rules._function import Function
from syncscope.rules._proofs import is_mask, of_rows, pointwise, same_rank

if TYPE_CHECKING:
    from syncscope.rules._draft import Part

SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}  # of `x[m] += a`
OF_WRITES = (
    Example(
        """
        import math
        import torch

        def wrapped(x: torch.Tensor):
            angle = x.double() * 4
            angle[angle < -1] += 2 * 3.5  # !
            angle[angle >= 6] /= 3  # !
            return angle
        """,
        """
        import math
        import torch

        def wrapped(x: torch.Tensor):
            angle = x.double() * 4
            angle = torch.where(angle < -1, angle + (2 * 3.5), angle)
            angle = torch.where(angle >= 6, angle / 3, angle)
            return angle
        """,
        Safety.UNSAFE,
        "x: float[n, m]",
    ),
    Example(
        """
        import torch

        def margin(scores: torch.Tensor, target: torch.BoolTensor):
            found = torch.zeros_like(scores)
            found[~target] = -scores[~target]  # !
            return found
        """,
        """
        import torch

        def margin(scores: torch.Tensor, target: torch.BoolTensor):
            found = torch.zeros_like(scores)
            found = torch.where(~target, -scores, found)
            return found
        """,
        Safety.SUGGEST,
        "scores: finite[n, m]; target: bool[n, m]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            rows = x.sum(dim=1) > 0
            x = x.clone()
            x[rows] += 1  # !
            return x
        """
    ),
)
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
    """`x[m] = f(a[m])` and `x[m] += f(a[m])` as `x = torch.where(m, f(a), x)`. The site is x[m] or any a[m]."""
    assign = function.statement(site.node)
    target = written(assign)
    if target is None or not isinstance(assign, (ast.Assign, ast.AugAssign)) or not isinstance(target.value, ast.Name):
        return None
    mask, base, bases = target.slice, target.value, list[ast.expr]()
    if not is_mask(site.fact_of(mask)) or not pointwise(function, assign.value, mask, None, bases):
        return None
    sign = "" if isinstance(assign, ast.Assign) else SIGNS.get(type(assign.op))
    if sign is None or not all(function.pure(n) for n in (assign.value, mask)):
        return None
    taken = [n for n in ast.walk(assign.value) if isinstance(n, ast.Subscript) and function.same(n.slice, mask)]
    x, value = site.fact_of(base), site.fact_of(assign.value)
    if (not taken and not sign) or (
        taken and x.dtype is not value.dtype and Dtype.UNKNOWN not in (x.dtype, value.dtype)
    ):
        return None
    fits = same_rank(site, function, mask, base)
    if not fits and (site.fact_of(mask).ndim is not None or of_rows(function, mask)):
        return None
    draft = function.draft()
    whole: Part = assign.value
    if taken:
        whole = taken[0].value if taken == [assign.value] else draft.swapped(assign.value, {n: n.value for n in taken})
    changed = draft.part(f"{{x}} {sign} {{whole}}", x=base, whole=whole) if sign else whole
    draft.replace(assign, "{x} = torch.where({m}, {changed}, {x})", x=base, m=mask, changed=changed)
    finite = ", and what the mask leaves out must be finite or its gradient is NaN" if taken else ""
    changes = (
        f"{base.id} is a new tensor: other views of the old one keep their values; all must be of its dtype and of the "
        f"mask's shape{finite}"
    )
    if fits:
        return draft.fix("compute all, and choose", Safety.UNSAFE, changes)
    shape = f"{base.id} must have the shape of {function.view.text(mask)}"
    return draft.fix("compute all, and choose", Safety.SUGGEST, f"{shape}; {changes}")


def written(assign: ast.stmt | None) -> ast.Subscript | None:
    """The target of `x[m] = ...` or `x[m] += ...`."""
    if isinstance(assign, ast.Assign) and len(assign.targets) == 1:
        target = assign.targets[0]
    elif isinstance(assign, ast.AugAssign):
        target = assign.target
    else:
        return None
    return target if isinstance(target, ast.Subscript) else None


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
