"""`if t: x = a` [`else: x = b`] as `x = torch.where(t, a, b)`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.conditions import BOTH, alike, decided_by, holes, mixing, predicate, undivided, waits
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Adds, Fix, Safety

ONE_WAY = "if {test}:\n    {x:name} = {yes}"
BOTH_WAYS = f"{ONE_WAY}\nelse:\n    {{x}} = {{no}}"
ADDS = Adds.BRANCHES
ROUNDS = True
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
    statement = decided_by(site, function)
    if statement is None:
        return None
    ways = seen(function, statement, BOTH_WAYS, ONE_WAY)
    if ways is None:
        return added(function, statement)
    name, test, value = function.file.text(ways["x"]), statement.test, ways["yes"]
    kept = (n for n in ast.walk(value) if isinstance(n, ast.Name) and n.id == name)
    other = ways["no"] if "no" in ways else next(kept, None)
    if other is None or not function.pure(value) or not function.pure(other):
        return None
    ways_in_turn = (value, other)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, ways_in_turn = test.operand, (other, value)
    condition = predicate(function, test)
    if condition is None or not alike(function, value, other):
        return None
    draft = Draft(function)
    chosen = {name: undivided(draft, way) for name, way in zip(("yes", "no"), ways_in_turn, strict=True)}
    draft.replace(statement, f"{name} = torch.where({condition}, {{yes}}, {{no}})", **chosen, **holes(test))
    return mixing(draft, "let the device choose", value, other)


def added(function: Function, statement: ast.If) -> Fix | None:
    """`if t: total += a` [`else: total += b`] as `total += torch.where(t, a, b)`; b is 0 where there is none."""
    for sign in ("+=", "-="):
        ways = seen(function, statement, *(way.replace(" = ", f" {sign} ") for way in (BOTH_WAYS, ONE_WAY)))
        if ways is not None:
            break
    else:
        return None
    test, value, other = statement.test, ways["yes"], ways.get("no")
    if waits(function, value) or not function.pure(value) or not (other is None or function.pure(other)):
        return None
    condition = predicate(function, test)
    of_floats = function.fact(value).dtype is Dtype.FLOAT
    fits = of_floats if other is None else alike(function, value, other) is Safety.UNSAFE
    if condition is None or not fits:
        return None
    draft = Draft(function)
    template = f"{{x}} {sign} torch.where({condition}, {{yes}}, {{no}})"
    draft.replace(statement, template, x=function.file.text(ways["x"]), yes=value, no=other or "0.0", **holes(test))
    return draft.fix("let the device choose", Safety.UNSAFE, BOTH)
