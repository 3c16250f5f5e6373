"""`torch.multinomial(w, 1)` as the place of the largest of noisy weights."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

EXAMPLES = (
    Example(
        """
        import torch

        def sample(logits: torch.Tensor):
            weights = logits.softmax(dim=-1)
            return torch.multinomial(weights, 1)  # !
        """,
        """
        import torch

        def sample(logits: torch.Tensor):
            weights = logits.softmax(dim=-1)
            return (weights / torch.empty_like(weights).exponential_()).argmax(dim=-1, keepdim=True)
        """,
        Safety.SUGGEST,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    op = function.op(site.node)
    if op is None or not isinstance(site.node, ast.expr) or not isinstance(op.base, ast.Name):
        return None
    count = op.argument(0, "num_samples")
    if count is None or function.constant(count) != 1 or "generator" in op.keywords:
        return None
    draft = Draft(function)
    draft.replace(site.node, "({w} / torch.empty_like({w}).exponential_()).argmax(dim=-1, keepdim=True)", w=op.base)
    return draft.fix("take the largest of noisy weights", Safety.SUGGEST, "other numbers are drawn for the same seed")
