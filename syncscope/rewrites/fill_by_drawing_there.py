"""`torch.empty(n).normal_().to(device)` as `torch.empty(n, device=device).normal_()`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.made_on_host import TYPES, target
from syncscope.codemod.patterns.sent import may_be_moved
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor, n: int):
            return x + torch.empty(n, 3).normal_().to(x.device)  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, n: int):
            return x + torch.empty(n, 3, device=x.device).normal_()
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch

        def noise(x: torch.Tensor, n: int, size: int, rank: int):
            x = x + torch.FloatTensor(n, size, 1).uniform_(0.0, 1.0).cuda()  # !
            return x @ x.mT + torch.FloatTensor(n, size).normal_().cuda(rank)  # !
        """,
        """
        import torch

        def noise(x: torch.Tensor, n: int, size: int, rank: int):
            x = x + torch.empty(n, size, 1, dtype=torch.float, device="cuda").uniform_(0.0, 1.0)
            return x @ x.mT + torch.empty(n, size, dtype=torch.float, device=rank).normal_()
        """,
        Safety.UNSAFE,
    ),
)
_DRAWS = frozenset("uniform_ normal_ exponential_ log_normal_ cauchy_ geometric_ random_ bernoulli_".split())
_FILLED = frozenset(("torch.empty", "torch.zeros", "torch.ones"))


def rewrite(site: Site, function: Function) -> Fix | None:
    match site.node:
        case ast.Call(
            func=ast.Attribute(value=ast.Call(func=ast.Attribute(value=ast.Call() as made, attr=word)) as drawn)
        ) if word in _DRAWS and not any(keyword.arg == "generator" for keyword in drawn.keywords):
            where = target(function, site.node)
        case _:
            return None
    changes = "the device's generator draws other numbers for the same seed"
    match site.node:
        case ast.Call(func=ast.Attribute(attr="cuda"), args=[ast.Name() as number], keywords=[]):
            where = number
            changes = f"{changes}; {number.id} must not be None"
    name = function.dotted(made.func) or ""
    sized = name in TYPES and len(made.args) > 1 and not made.keywords  # one alone may be what it holds
    if where is None or not (name in _FILLED or sized) or not may_be_moved(function, made):
        return None
    draft = Draft(function)
    if sized:
        there = draft.call(made, {made.func: draft.part("torch.empty")}, dtype=draft.part(TYPES[name]), device=where)
    else:
        there = draft.call(made, {}, device=where)
    draft.replace(site.node, "{drawn}", drawn=draft.swapped(drawn, {made: there}))
    return draft.fix("make it on the device", Safety.UNSAFE, changes)
