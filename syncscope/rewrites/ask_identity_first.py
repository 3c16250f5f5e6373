"""`torch.equal(a, b)` behind `a is b`: what is one object need not be computed."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

COMPILES = False  # TorchScript compares tensors with `is` to None only
EXAMPLES = (
    Example(
        """
        import torch

        def kernel(x: torch.Tensor, y: torch.Tensor):
            if not torch.equal(x, y):  # !
                return (x - y).abs()
            return torch.zeros_like(x)
        """,
        """
        import torch

        def kernel(x: torch.Tensor, y: torch.Tensor):
            if not (x is y or torch.equal(x, y)):
                return (x - y).abs()
            return torch.zeros_like(x)
        """,
        Safety.SUGGEST,
        "x: finite[n]; y: finite[n]",
    ),
)


def lasting(function: Function, node: ast.expr) -> bool:
    """Whether a value was handed in or is kept: what is computed here is no other object."""
    return isinstance(node, ast.Attribute) or (isinstance(node, ast.Name) and function.untouched(node))


def rewrite(site: Site, function: Function) -> Fix | None:
    asked = seen(function, site.node, "torch.equal({a}, {b})")
    if asked is None or not all(isinstance(n, (ast.Name, ast.Attribute)) and function.pure(n) for n in asked.values()):
        return None
    a, b = asked["a"], asked["b"]
    if function.same(a, b) or not (lasting(function, a) and lasting(function, b)):
        return None
    outer = function.parent(site.node)
    if isinstance(outer, ast.BoolOp) and any(
        isinstance(n, ast.Compare) and isinstance(n.ops[0], (ast.Is, ast.IsNot)) for n in outer.values
    ):
        return None
    if not isinstance(outer, (ast.If, ast.IfExp, ast.BoolOp, ast.UnaryOp, ast.While, ast.Assert, ast.Return)):
        return None
    assert isinstance(site.node, ast.Call)
    draft = Draft(function)
    draft.replace(site.node, "{a} is {b} or {asked}", a=a, b=b, asked=site.node)
    return draft.fix("ask first whether they are one tensor", Safety.SUGGEST, "a tensor with NaN then equals itself")
