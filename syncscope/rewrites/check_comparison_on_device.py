"""`assert torch.equal(a, b)` as `torch._assert_async((a == b).all())`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.checks import LATER, message
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety, Way

TEMPLATES = {
    "torch.equal": "torch._assert_async(({a} == {b}).all(), {said})",
    "torch.allclose": "torch._assert_async(torch.isclose({a}, {b}).all(), {said})",
}
WAY = Way.CHECKS
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            assert torch.allclose(x, y), "they drifted apart"  # !
            return x + y
        """,
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            torch._assert_async(torch.isclose(x, y).all(), "they drifted apart")
            return x + y
        """,
        Safety.SUGGEST,
        "x: finite[n]; y: finite[n]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    check, call = function.parent(site.node), site.node
    if not isinstance(check, ast.Assert) or not isinstance(call, ast.Call) or len(call.args) != 2 or call.keywords:
        return None
    template = TEMPLATES.get(function.dotted(call.func) or "")
    if template is None:
        return None
    said = message(function, check.msg, call)
    if said is None:
        return None
    draft = Draft(function)
    draft.replace(check, template, a=call.args[0], b=call.args[1], said=said)
    return draft.fix(
        "let the device check",
        Safety.SUGGEST,
        *LATER,
    )
