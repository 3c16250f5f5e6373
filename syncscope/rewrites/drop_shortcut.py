"""`if not torch.any(weight > 0): return (pred * weight).sum()` before the loss itself, taken out: a suggestion.

It is as written in the losses of mmdet and its kin: what comes after gives zero there, too.
"""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import Parts, seen
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

NOTHING = (
    "not torch.any({x})",
    "not {x}.any()",
    "{x}.any() == 0",
    "torch.sum({x}) == 0",
    "{x}.sum() == 0",
    "{x}.count_nonzero() == 0",
)
CHANGES = "what comes after is computed where nothing is selected, too: it must give the same there, and divide by no 0"
EXAMPLES = (
    Example(
        """
        import torch
        import torch.nn.functional as F

        def loss(pred: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None = None, reduction: str = "mean"):
            if weight is not None and not torch.any(weight > 0) and reduction != "none":  # !
                if pred.dim() == weight.dim() + 1:
                    weight = weight.unsqueeze(1)
                return (pred * weight).sum()
            each = F.smooth_l1_loss(pred, target, reduction="none")
            if weight is not None:
                each = each * weight
            return each if reduction == "none" else each.mean()
        """,
        """
        import torch
        import torch.nn.functional as F

        def loss(pred: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None = None, reduction: str = "mean"):
            each = F.smooth_l1_loss(pred, target, reduction="none")
            if weight is not None:
                each = each * weight
            return each if reduction == "none" else each.mean()
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch

        def encode(layers, x: torch.Tensor, tokens: torch.LongTensor):
            padding_mask = tokens.eq(1)
            if not padding_mask.any():  # !
                padding_mask = None
            for layer in layers:
                x = layer(x, padding_mask)
            return x
        """,
        """
        import torch

        def encode(layers, x: torch.Tensor, tokens: torch.LongTensor):
            padding_mask = tokens.eq(1)
            for layer in layers:
                x = layer(x, padding_mask)
            return x
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch

        def kept(x: torch.Tensor, mask: torch.BoolTensor):
            if not mask.any():  # !
                return None
            return (x * mask).sum()
        """,
    ),
)


NO_MASK = "if {test}:\n    {m:name} = None"


def without_none(function: Function, shortcut: ast.If, none: Parts, asked: ast.expr) -> Fix | None:
    """`if not mask.any(): mask = None`, taken out: a mask of nothing masks nothing."""
    about = seen(function, asked, *NOTHING)
    if about is None or not function.same_name(about["x"], none["m"]):
        return None
    draft = Draft(function)
    draft.remove(shortcut)
    name = function.file.text(none["m"])
    changes = f"{name} stays a tensor where it masks nothing: what takes it must do the same then as without one"
    return draft.fix("keep the mask", Safety.SUGGEST, changes)


def rewrite(site: Site, function: Function) -> Fix | None:
    shortcut = function.statement(site.node) if isinstance(site.node, ast.expr) else None
    if (
        not isinstance(shortcut, ast.If)
        or shortcut.orelse
        or function.is_elif(shortcut)
        or not function.alone(shortcut)
    ):
        return None
    tests = shortcut.test.values if isinstance(shortcut.test, ast.BoolOp) else [shortcut.test]
    if isinstance(shortcut.test, ast.BoolOp) and isinstance(shortcut.test.op, ast.Or):
        return None
    asked = [test for test in tests if any(n is site.node for n in ast.walk(test))]
    if len(asked) != 1 or seen(function, asked[0], *NOTHING) is None:
        return None
    if (none := seen(function, shortcut, NO_MASK)) is not None:
        return without_none(function, shortcut, none, asked[0])
    last = shortcut.body[-1]
    made = last.value if isinstance(last, ast.Return) else None
    if made is None or not function.fact(made).is_tensor or not isinstance(function.block(shortcut)[-1], ast.Return):
        return None
    if any(isinstance(n, (ast.Raise, ast.Assert)) for s in shortcut.body for n in ast.walk(s)):
        return None
    draft = Draft(function)
    draft.remove(shortcut)
    return draft.fix("go without the shortcut", Safety.SUGGEST, CHANGES)
