"""`x[m].max() if m.any() else 0`, or the same with `if`: the reduction with the mask inside needs no question."""

from __future__ import annotations

import ast

from syncscope.codemod.function import Function
from syncscope.codemod.patterns.conditions import test_of
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Adds, Fix, Safety
from syncscope.model.ops import Op
from syncscope.rewrites import reduce_if_mask_fits, sum_losses_by_mask
from syncscope.rewrites.reduce_with_mask import reduced

ADDS = Adds.ROWS
EXAMPLES = (
    Example(
        """
        import torch

        def worst(x: torch.Tensor):
            x = x.double()
            good = x < 1
            return x[good].max() if good.any() else 0.0  # !
        """,
        """
        import torch

        def worst(x: torch.Tensor):
            x = x.double()
            good = x < 1
            return torch.where(good.any(), x.masked_fill(~good, float("-inf")).max(), 0.0)
        """,
        Safety.UNSAFE,
        "x: holes[n + 1, m + 1]",  # of -inf only, the gradient is shared with what is left out, as the fix says
    ),
    Example(
        """
        import torch

        def worst(x: torch.Tensor):
            x = x.double()
            good = x < 1
            if good.sum() == 0:  # !
                worst = x.new_zeros(())
            else:
                worst = x[good].amax()
            return worst
        """,
        """
        import torch

        def worst(x: torch.Tensor):
            x = x.double()
            good = x < 1
            worst = torch.where(good.any(), x.masked_fill(~good, float("-inf")).amax(), x.new_zeros(()))
            return worst
        """,
        Safety.UNSAFE,
        "x: holes[n + 1, m + 1]",  # of -inf only, the gradient is shared with what is left out, as the fix says
    ),
    Example(
        """
        import torch

        def loss(x: torch.Tensor, y: torch.Tensor):
            near = x.detach().round()
            total = y.sum()
            found = x > 0
            if found.any():  # !
                total += (x[found] - near[found]).square().mean()
            return total
        """,
        """
        import torch

        def loss(x: torch.Tensor, y: torch.Tensor):
            near = x.detach().round()
            total = y.sum()
            found = x > 0
            total += torch.where(found, (x - near).square(), 0.0).sum() / found.sum().clamp(min=1)
            return total
        """,
        Safety.UNSAFE,
        "x: finite[n, m]; y: finite[n]",
    ),
    Example(
        """
        import torch
        import torch.nn.functional as F

        def loss(x: torch.Tensor):
            near = x.detach().round()
            found = x > 0
            total = 0.0
            if found.sum() > 0:  # !
                total = F.smooth_l1_loss(x[found], near[found])
            return total
        """,
        """
        import torch
        import torch.nn.functional as F

        def loss(x: torch.Tensor):
            near = x.detach().round()
            found = x > 0
            total = 0.0
            total = torch.where(found, F.smooth_l1_loss(x, near, reduction="none"), 0.0).sum() / found.sum().clamp(min=1)
            return total
        """,
        Safety.UNSAFE,
        "x: finite[n, m]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    test = test_of(site, function)
    choice = function.parent(test) if test is not None else None
    if not isinstance(choice, (ast.If, ast.IfExp)) or choice.test is not test:
        return None
    inside = {id(n) for n in ast.walk(choice)}
    taken = [s for s in function.sites if s.op is Op.MASK_READ and id(s.node) in inside]
    for one in taken:
        if not isinstance(one.node, ast.Subscript):
            continue
        found = (
            sum_losses_by_mask.rewrite(one, function)
            or reduced(one, function, one.node.value, one.node.slice)
            or reduce_if_mask_fits.rewrite(one, function)
        )
        if found is not None and any(e.span == function.file.span(choice) for e in found.edits):
            return found
    return None
