"""`x / (m.sum().item() + 1)`, directly or with a name for the number: it meets tensors only, and need not be read."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.mixed import mixed
from syncscope.codemod.patterns.reads import STAYS_TENSOR, detached, tensor_read, undone_between, without_gradient
from syncscope.codemod.whereabouts import made_on_host
from syncscope.model.example import Example
from syncscope.model.fact import Device, Dtype, Site
from syncscope.model.finding import Fix, Safety

ROUNDS = True
EXAMPLES = (
    Example(
        """
        import torch

        def loss(x: torch.Tensor):
            found = (x > 0).sum().item()  # !
            size = x.detach().abs().mean()
            return x.sum() / (found + 1), x.cos().mean() * size.item()  # !
        """,
        """
        import torch

        def loss(x: torch.Tensor):
            found = (x > 0).sum()
            size = x.detach().abs().mean()
            return x.sum() / (found + 1), x.cos().mean() * size.detach()
        """,
        Safety.UNSAFE,
        "x: finite[n + 1, m + 1]",
    ),
    Example(
        """
        import torch

        def epoch(losses: list[torch.Tensor], rank: int):
            sums = torch.zeros(2).to(rank)
            for loss in losses:
                loss = loss.square().mean()
                sums[0] += loss.item()  # !
                sums[1] += len(losses)
            return sums
        """,
        """
        import torch

        def epoch(losses: list[torch.Tensor], rank: int):
            sums = torch.zeros(2).to(rank)
            for loss in losses:
                loss = loss.square().mean()
                sums[0] += loss.detach()
                sums[1] += len(losses)
            return sums
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch
        from torch import nn

        class Margin(nn.Module):
            def __init__(self, gamma: float):
                super().__init__()
                self.gamma = nn.Parameter(torch.tensor([gamma]))
                self.log_alpha = nn.Parameter(torch.zeros(1))

            def forward(self, score: torch.Tensor):
                far = self.gamma.item() - torch.norm(score, p=1, dim=1)  # !
                return far * self.log_alpha.exp().item()  # !
        """,
        """
        import torch
        from torch import nn

        class Margin(nn.Module):
            def __init__(self, gamma: float):
                super().__init__()
                self.gamma = nn.Parameter(torch.tensor([gamma]))
                self.log_alpha = nn.Parameter(torch.zeros(1))

            def forward(self, score: torch.Tensor):
                far = self.gamma.detach() - torch.norm(score, p=1, dim=1)
                return far * self.log_alpha.exp().detach()
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch

        def weights(g: torch.Tensor, bins: int, before: torch.Tensor | None):
            count = torch.zeros(bins)
            for i in range(bins):
                count[i] = (g == i).sum()
            if before is not None:
                count = 0.75 * before + 0.25 * count
            filled = (count > 0).sum().item()  # !
            return torch.clamp(count * filled, min=0.0001)
        """,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    tensor, read = tensor_read(function, site.node), site.node
    if tensor is None or not isinstance(read, ast.Call) or site.fact.dtype is Dtype.BOOL:
        return None
    named = function.parent(read)
    definition = named if isinstance(named, ast.Assign) and named.value is read else None
    uses = function.seen_by(definition) if definition is not None else [read]
    shaped = site.fact.dtype is Dtype.UNKNOWN or site.fact.ndim != 0
    if not uses or not all(meets_tensor(function, use) for use in uses):
        return None
    if made_on_host(function, tensor):  # then nothing waits for a device, or it is not the one of what it meets
        return None
    if shaped and not learned(tensor):
        return None
    if definition is not None and undone_between(function, tensor, definition, uses[-1]):
        return None
    whole = site.fact.dtype is Dtype.INT or without_gradient(function, tensor)
    cut = "" if whole else ".detach()"
    draft = Draft(function)
    draft.replace(read, f"{{t}}{cut}", t=detached(function, tensor) if cut else tensor)
    wider = "where both are of no dimensions, the wider dtype wins" if cut else ""
    changes = [STAYS_TENSOR, wider, "both must live on one device"]
    if shaped:
        met = "must have no more dimensions than what it meets, and where it has some its dtype counts"
        changes.append(f"{function.file.text(tensor)} {met}")
    return draft.fix("keep it on the device", Safety.UNSAFE, *changes)


def learned(tensor: ast.expr) -> bool:
    """Whether this is a parameter or a buffer of a module, or made of one alone: `self.log_alpha.exp()`."""
    while isinstance(tensor, ast.Call) and isinstance(tensor.func, ast.Attribute) and not tensor.args:
        tensor = tensor.func.value
    return isinstance(tensor, ast.Attribute) and isinstance(tensor.value, ast.Name) and tensor.value.id == "self"


def meets_tensor(function: Function, use: ast.expr) -> bool:
    """Whether a number only becomes an operand of a tensor, or a part of one, perhaps after arithmetic with numbers that are
    written out."""
    at, outer = use, function.parent(use)
    while isinstance(outer, ast.BinOp) and isinstance(outer.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
        other = outer.right if outer.left is at else outer.left
        fact = function.fact(other)
        if (
            fact.is_tensor
            and fact.confidence >= 2
            and fact.dtype in (Dtype.FLOAT, Dtype.UNKNOWN)
            and not mixed(function, other)
            and not made_on_host(function, other)
        ):
            return True
        if function.constant(other) is None:
            return False
        at, outer = outer, function.parent(outer)
    match outer:
        case (
            ast.AugAssign(target=ast.Subscript(value=whole), op=ast.Add() | ast.Sub())
            | ast.Assign(targets=[ast.Subscript(value=whole)])
        ):
            fact = function.fact(whole)
            moved = fact.device in (Device.DEVICE, Device.UNKNOWN)
            return fact.is_tensor and moved and fact.confidence >= 2 and fact.dtype is Dtype.FLOAT
    return False
