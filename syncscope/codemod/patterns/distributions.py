"""What draws when a distribution of torch is asked for a sample, and whether gradients are switched off around it."""

from __future__ import annotations

import ast

from syncscope.codemod.function import Function
from syncscope.project.syntax import without_gradients
from syncscope.tensors.facts import is_distribution
from syncscope.tensors.torch.distributions import drawn_by


def drawing(function: Function, node: ast.expr) -> str | None:
    """The distribution that draws where this is asked for a sample: of `Independent(Normal(...), 1)` the inner one."""
    known = function.fact(node)
    return drawn_by(known, str(known.ref).removesuffix("()")) if is_distribution(known) else None


def in_no_grad(function: Function, node: ast.AST) -> bool:
    """Whether a node stands in `with torch.no_grad()`."""
    around = function.parent(node)
    while around is not None and not (isinstance(around, ast.With) and without_gradients(around)):
        around = function.parent(around)
    return around is not None
