"""`if t: return a` before the `return b` of the same block: one return of `torch.where(t, a, b)`.

It waits for losses that end early where a batch has nothing to learn from, as that of `samples/segmentation.py`.
"""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.conditions import alike, decided_by, holes, mixing, predicate, undivided
from syncscope.codemod.writes import changed
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Adds, Fix, Safety

LEAVING = (ast.Return, ast.Raise, ast.Yield, ast.Break, ast.Continue)
ADDS = Adds.BRANCHES
ROUNDS = True
EXAMPLES = (
    Example(
        """
        import torch

        def loss(x: torch.FloatTensor, y: torch.FloatTensor):
            if (y > 0).sum() < 2:  # !
                return x.sum() * 0.0
            keep = y - x  # the common case
            return keep.mean()
        """,
        """
        import torch

        def loss(x: torch.FloatTensor, y: torch.FloatTensor):
            early = (y > 0).sum() < 2
            keep = y - x  # the common case
            return torch.where(early, x.sum() * 0.0, keep.mean())
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]; y: finite[n + 1]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    statement = decided_by(site, function)
    if statement is None:
        return None
    test = statement.test
    block = function.block(statement)
    last, rest = block[-1], block[block.index(statement) + 1 :]
    returned, returned_else = (
        seen(function, statement, "if {test}:\n    return {yes}"),
        seen(function, last, "return {no}"),
    )
    if returned is None or returned_else is None or not function.pure(returned["yes"]):
        return None
    yes, no = returned["yes"], returned_else["no"]
    if [n for s in rest for n in ast.walk(s) if isinstance(n, LEAVING)] != [last]:
        return None
    if not all(calm(function, s) for s in rest):
        return None
    if changed(function, statement, last, yes) or not alike(function, yes, no):
        return None
    condition = predicate(function, test)
    if condition is None:
        return None
    draft = Draft(function)
    flag = function.fresh("early")
    if not draft.head_to_assignment(statement, flag, condition, **holes(test)):
        return None
    draft.replace(no, f"torch.where({flag}, {{yes}}, {{no}})", yes=undivided(draft, yes), no=undivided(draft, no))
    return mixing(draft, "compute both, and let the device choose", yes, no)


def calm(function: Function, statement: ast.stmt) -> bool:
    """Whether a statement only computes: names get values of torch's own functions and losses."""
    match statement:
        case ast.Return():
            pass
        case ast.Assign(targets=targets):
            if not all(isinstance(n, ast.Name) for t in targets for n in getattr(t, "elts", [t])):
                return False
        case _:
            return False
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
    made = {id(c.func) for c in calls}  # nn.CrossEntropyLoss() in nn.CrossEntropyLoss()(x, y)
    for call in calls:
        name = function.dotted(call.func) or ""
        if id(call) in made or (name.startswith("torch.nn.") and name.endswith("Loss")):
            continue
        loss = isinstance(call.func, ast.Call) and (function.dotted(call.func.func) or "").endswith("Loss")
        if not loss and not function.pure_call(call):
            return False
    return not any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for n in ast.walk(statement))
