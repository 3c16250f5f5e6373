"""`self.loss_cls(x, avg_factor=num_pos.item())`, as a suggestion: what divides by a number divides by a tensor as well."""

from __future__ import annotations

import ast
import re

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.reads import detached, needs_number, tensor_read, undone_between, without_gradient
from syncscope.codemod.sharing import VIEWS
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety

LOCAL = True
CHANGES = "{0} must take a tensor where it took a number, and ask for no value of it"
DIVISORS = re.compile(
    r"(avg|average|norm\w*)_?factor|num_?(total_?)?\w*|denom\w*|divisor|count|n_\w+|total\w*|(loss_)?(weight|scale)"
)
EXAMPLES = (
    Example(
        """
        import torch
        from torch import nn

        class Head(nn.Module):
            def __init__(self, loss_cls: nn.Module):
                super().__init__()
                self.loss_cls = loss_cls

            def loss(self, scores: torch.Tensor, labels: torch.LongTensor):
                num_pos = (labels >= 0).sum().clamp(min=1).item()  # !
                return self.loss_cls(scores, labels, avg_factor=num_pos)
        """,
        """
        import torch
        from torch import nn

        class Head(nn.Module):
            def __init__(self, loss_cls: nn.Module):
                super().__init__()
                self.loss_cls = loss_cls

            def loss(self, scores: torch.Tensor, labels: torch.LongTensor):
                num_pos = (labels >= 0).sum().clamp(min=1)
                return self.loss_cls(scores, labels, avg_factor=num_pos)
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch
        from torch import nn

        class Head(nn.Module):
            def loss(self, scores: torch.Tensor, labels: torch.LongTensor, make):
                kept = (labels >= 0).sum().item()  # !
                if kept == 0:
                    return scores.sum() * 0
                return make(scores, num=kept)
        """
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    tensor, read = tensor_read(function, site.node), site.node
    if tensor is None or not isinstance(read, ast.Call) or needs_number(function, read):
        return None
    named = function.parent(read)
    definition = named if isinstance(named, ast.Assign) and named.value is read else None
    uses = function.seen_by(definition) if definition is not None else [read]
    takers = {taker for use in uses if (taker := taken_by(function, use)) is not None}
    if not uses or len(takers) == 0 or not all(taken_by(function, use) for use in uses):
        return None
    if definition is not None and not new(function, tensor) and undone_between(function, tensor, definition, uses[-1]):
        return None
    whole = site.fact.dtype is Dtype.INT or without_gradient(function, tensor)
    cut = "" if whole else ".detach()"
    draft = Draft(function)
    draft.replace(read, f"{{t}}{cut}", t=detached(function, tensor) if cut else tensor)
    return draft.fix("hand the tensor on", Safety.SUGGEST, CHANGES.format(", ".join(sorted(takers))))


def new(function: Function, tensor: ast.expr) -> bool:
    """Whether this is a tensor that nothing else holds: what is written later is not written to it."""
    op = function.op(tensor)
    return isinstance(tensor, ast.BinOp) or (op is not None and not op.name.endswith("_") and op.name not in VIEWS)


def taken_by(function: Function, use: ast.expr) -> str | None:
    """The module or function that gets a number as what it divides or multiplies by: `avg_factor=num_pos`; None for others."""
    given = function.parent(use)
    call = function.parent(given) if isinstance(given, ast.keyword) else None
    if not isinstance(given, ast.keyword) or not isinstance(call, ast.Call) or not DIVISORS.fullmatch(given.arg or ""):
        return None
    own = (function.dotted(call.func) or "").startswith("torch.")  # of PyTorch it is known what takes a tensor
    return None if own or not isinstance(call.func, (ast.Name, ast.Attribute)) else function.file.text(call.func)
