"""`if t: x = a` [`else: x = b`] as `x = torch.where(t, a, b)`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.conditions import BOTH, alike, holes, mixing, predicate, test_of, waits
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety

EXAMPLES = (
    Example(
        """
        import torch

        def add_up(total: torch.Tensor, x: torch.Tensor):
            step = x.sum()
            if torch.isnan(step) or torch.isinf(step):  # !
                total = total - total / 10
            else:
                total = total + step
            return total
        """,
        """
        import torch

        def add_up(total: torch.Tensor, x: torch.Tensor):
            step = x.sum()
            total = torch.where(torch.isnan(step) | torch.isinf(step), total - total / 10, total + step)
            return total
        """,
        Safety.SUGGEST,
        "total: finite[]; x: finite[n + 1]",
    ),
    Example(
        """
        import torch

        def add_up(x: torch.Tensor):
            total, step = x.mean(), x.square().mean()
            if torch.isnan(step) or torch.isinf(step):  # !
                total += total / 10
            else:
                total += step
            return total
        """,
        """
        import torch

        def add_up(x: torch.Tensor):
            total, step = x.mean(), x.square().mean()
            total += torch.where(torch.isnan(step) | torch.isinf(step), total / 10, step)
            return total
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    test, statement = test_of(site, function), function.statement(site.node)
    if test is None or not isinstance(statement, ast.If) or statement.test is not test or function.is_elif(statement):
        return None
    if len(statement.body) != 1 or len(statement.orelse) > 1:
        return None
    yes = assigned(statement.body[0])
    no = assigned(statement.orelse[0]) if statement.orelse else None
    if yes is None or (statement.orelse and (no is None or no[0] != yes[0])):
        return added(site, function, statement, test)
    name, value = yes
    other = (
        no[1] if no is not None else next((n for n in ast.walk(value) if function.same_name(n, ast.Name(name))), None)
    )
    if not isinstance(other, ast.expr) or not function.pure(value) or not function.pure(other):
        return None
    condition = predicate(function, test)
    if condition is None or not alike(function, value, other):
        return None
    draft = Draft(function)
    draft.replace(statement, f"{name} = torch.where({condition}, {{yes}}, {{no}})", yes=value, no=other, **holes(test))
    return mixing(draft, "let the device choose", value, other)


def added(site: Site, function: Function, statement: ast.If, test: ast.expr) -> Fix | None:
    """`if t: total += a` [`else: total += b`] as `total += torch.where(t, a, b)`; b is 0 where there is none."""
    yes, no = statement.body[0], statement.orelse[0] if statement.orelse else None
    if (
        not isinstance(yes, ast.AugAssign)
        or not isinstance(yes.op, (ast.Add, ast.Sub))
        or not isinstance(yes.target, ast.Name)
    ):
        return None
    if no is not None and (
        not isinstance(no, ast.AugAssign)
        or type(no.op) is not type(yes.op)
        or not function.same(no.target, yes.target)
        or not function.pure(no.value)
    ):
        return None
    if waits(function, yes.value):
        return None
    condition = predicate(function, test)
    other = no.value if isinstance(no, ast.AugAssign) else None
    fits = (
        alike(function, yes.value, other) is Safety.UNSAFE
        if other is not None
        else function.fact(yes.value).dtype is Dtype.FLOAT
    )
    if condition is None or not fits or not function.pure(yes.value):
        return None
    draft = Draft(function)
    template = (
        f"{yes.target.id} {'+' if isinstance(yes.op, ast.Add) else '-'}= torch.where({condition}, {{yes}}, {{no}})"
    )
    draft.replace(statement, template, yes=yes.value, no=other if other is not None else "0.0", **holes(test))
    return draft.fix("let the device choose", Safety.UNSAFE, BOTH)


def assigned(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """Name and value of `x = a`."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id, statement.value
    return None
