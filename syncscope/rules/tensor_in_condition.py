"""A tensor on the device as a condition: `if t:`, `while`, `assert`, `and`, `or`, `not`, `a if t else b`, `in`.

Why it waits
------------
Python can only go one way or the other, so the host waits until the device has computed the condition and everything before
it.

What to do
----------
- Both ways are cheap and end in tensors: compute both, and let `torch.where` choose.
- The question is whether a mask selects anything: write the code so that it need not be asked (a sum over nothing is zero).
- A check of the input: ask in the dataset, on the host; or let the device check, `torch._assert_async`.
- A check of the loss: `bad |= ~torch.isfinite(loss)` on the device, and look every n steps.
- A loop that ends when something has converged: ask every n passes, and let `where` keep what is done.

Fix safety
----------
Where both ways end in tensors, `torch.where` lets the device choose: unsafe, because both ways are then computed on every
pass, and where the way not taken gives NaN or inf in its gradient, `where` passes NaN on. A check that only raises can
become `torch._assert_async`: it is suggested, not applied, because the error comes later, from the device, and is always a
RuntimeError. Whether a mask selects anything need not be asked: a sum over nothing is zero, a mean is divided by the count or
one, and of a maximum the device chooses: unsafe, because the result is then always a tensor.
"""

from __future__ import annotations

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View, _guards
from syncscope.rules._conditions import (
    checked_later,
    chosen,
    chosen_at_return,
    chosen_in_expression,
    unguarded,
    unless_empty,
)

FAMILY = Family.READ
SEVERITY = Severity.WARNING
OPS = ("condition",)
SEEN_AS = ("bool", "aten::is_nonzero", "aten::item", "aten::_local_scalar_dense")
EXAMPLES = (
    Example(
        """
        import torch

        def loss(x: torch.FloatTensor):
            total = x.sum()
            if x.abs().max() > 100:  # !
                total = total * 0.0
            return total
        """,
        """
        import torch

        def loss(x: torch.FloatTensor):
            total = x.sum()
            total = torch.where(x.abs().max() > 100, total * 0.0, total)
            return total
        """,
        Safety.UNSAFE,
        "x: finite[n + 1, m + 1]",
    ),
    Example(
        """
        import torch

        def loss(x: torch.FloatTensor, y: torch.FloatTensor):
            if (y > 0).sum() < 2:  # !
                return x.sum() * 0.0
            keep = y - x  # the common case
            return keep.mean()
        """,
        """
        import torch

        def loss(x: torch.FloatTensor, y: torch.FloatTensor):
            early = (y > 0).sum() < 2
            keep = y - x  # the common case
            return torch.where(early, x.sum() * 0.0, keep.mean())
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]; y: finite[n + 1]",
    ),
    Example(
        """
        import torch

        def add_up(total: torch.Tensor, x: torch.Tensor):
            step = x.sum()
            if torch.isnan(step) or torch.isinf(step):  # !
                total = total - total / 10
            else:
                total = total + step
            return total
        """,
        """
        import torch

        def add_up(total: torch.Tensor, x: torch.Tensor):
            step = x.sum()
            total = torch.where(torch.isnan(step) | torch.isinf(step), total - total / 10, total + step)
            return total
        """,
        Safety.SUGGEST,
        "total: finite[]; x: finite[n + 1]",
    ),
    Example(
        """
        import torch

        def add_up(x: torch.Tensor):
            total, step = x.mean(), x.square().mean()
            if torch.isnan(step) or torch.isinf(step):  # !
                total += total / 10
            else:
                total += step
            return total
        """,
        """
        import torch

        def add_up(x: torch.Tensor):
            total, step = x.mean(), x.square().mean()
            total += torch.where(torch.isnan(step) | torch.isinf(step), total / 10, step)
            return total
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.clone()
            low = x < 0
            if low.any():  # !
                x[low] = 0  # no debts
            return x
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.clone()
            low = x < 0
            x[low] = 0  # no debts
            return x
        """,
        Safety.UNSAFE,
        "x: finite[n, m]",
    ),
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
            return torch.where(scale > 1, x / scale, x)
        """,
        Safety.UNSAFE,
        "x: normal[n + 1]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.FloatTensor):
            if torch.isnan(x).any():  # !
                raise ValueError("x has a hole")
            return x * 2
        """,
        """
        import torch

        def forward(x: torch.FloatTensor):
            torch._assert_async(~torch.isnan(x).any(), "x has a hole")
            return x * 2
        """,
        Safety.SUGGEST,
        "x: finite[n]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            if x is not None and x.shape[0] > 1:
                return x
            return x * 2
        """
    ),
    Example(
        """
        import torch

        def loss(x: torch.Tensor, m: torch.BoolTensor):
            total = x.sum()
            if m.any():  # !
                total += x[m].std()
            return total
        """
    ),
    *_guards.EXAMPLES,
)


def message(site: Site, view: View) -> str | None:
    return f"{view.quote(site.operand or site.node)} is computed on the device: Python waits for it to know which way to go"


def rewrite(site: Site, function: Function) -> Fix | None:
    if site.confidence < 2:  # a guess is no ground to change code on
        return None
    return (
        unless_empty(site, function)
        or chosen(site, function)
        or chosen_at_return(site, function)
        or chosen_in_expression(site, function)
        or unguarded(site, function)
        or checked_later(site, function)
    )
