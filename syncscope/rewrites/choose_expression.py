"""`a if t else b` as `torch.where(t, a, b)`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.conditions import alike, holes, mixing, predicate, test_of, undivided
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Adds, Fix, Safety

ADDS = Adds.BRANCHES
ROUNDS = True
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            scale = x.norm()
            return x / scale if scale > 1 else x  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            scale = x.norm()
            return torch.where(scale > 1, x / torch.where(scale != 0, scale, 1), x)
        """,
        Safety.SUGGEST,
        "x: normal[n + 1]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    test = test_of(site, function)
    choice = function.parent(test) if test is not None else None
    if test is None or not isinstance(choice, ast.IfExp) or choice.test is not test:
        return None
    if not function.pure(choice.body) or not function.pure(choice.orelse):
        return None
    condition = predicate(function, test)
    if condition is None or not alike(function, choice.body, choice.orelse):
        return None
    draft = Draft(function)
    ways = {"yes": undivided(draft, choice.body), "no": undivided(draft, choice.orelse)}
    draft.replace(choice, f"torch.where({condition}, {{yes}}, {{no}})", **holes(test), **ways)
    return mixing(draft, "let the device choose", choice.body, choice.orelse)
