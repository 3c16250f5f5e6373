"""A number that is on the device, put where a mask says or taken as a bound: without asking the host for it."""

from __future__ import annotations

import ast

from syncscope.model.fact import Device, Fact, Site, Value
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example
from syncscope.rules._function import Function
from syncscope.rules._proofs import is_mask, same_rank

PROMOTED = "a number of another dtype is converted, or the result promoted, instead of raising an error"
OF_WRITES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x * 2
            x[x < 0] = x.abs().max()  # !
            return x
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = x * 2
            x.copy_(torch.where(x < 0, x.abs().max(), x))
            return x
        """,
        Safety.UNSAFE,
        "x: normal[n + 1, m + 1]",
    ),
)
OF_ARGUMENTS = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor, keep: torch.BoolTensor):
            least = x.amin()
            y = x.masked_fill(keep, least)  # !
            return y.masked_fill_(y > 1, x.mean())  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, keep: torch.BoolTensor):
            least = x.amin()
            y = torch.where(keep, least, x)
            return y.copy_(torch.where(y > 1, x.mean(), y))
        """,
        Safety.UNSAFE,
        "x: normal[n + 1, m + 1]; keep: bool[n + 1, 1]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            high = y.detach().norm()
            return torch.clamp(x, 0, high) + y.clamp(high, max=2.0)  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            high = y.detach().norm()
            return x.clamp(min=0).clamp(max=high) + y.clamp(min=high).clamp(max=2.0)
        """,
        Safety.UNSAFE,
        "x: finite[n, 3]; y: finite[3]",
    ),
)


def filled(site: Site, function: Function) -> Fix | None:
    """`x[m] = t` with one number of the device as `x.copy_(torch.where(m, t, x))`."""
    target = site.node
    assign = function.parent(target)
    if not isinstance(assign, ast.Assign) or assign.targets != [target] or not isinstance(target, ast.Subscript):
        return None
    mask, base, value = target.slice, target.value, assign.value
    if not is_mask(site.fact_of(mask)) or not number(site.fact_of(value)) or not isinstance(base, ast.Name):
        return None
    if not same_rank(site, function, mask, base):
        return None
    draft = function.draft()
    draft.replace(assign, "{x}.copy_(torch.where({m}, {t}, {x}))", x=base, m=mask, t=value)
    return draft.fix("choose the number everywhere", Safety.UNSAFE, f"{PROMOTED}; the work is that of all elements")


def argument(site: Site, function: Function) -> Fix | None:
    """`x.masked_fill(m, t)` as `torch.where(m, t, x)`; `x.clamp(0, t)` as `x.clamp(min=0).clamp(max=t)`."""
    op = function.op(site.node)
    if op is None or not isinstance(site.node, ast.expr) or not number(site.fact):
        return None
    draft = function.draft()
    if op.name in ("masked_fill", "masked_fill_"):
        mask, value = op.argument(0, "mask"), op.argument(1, "value")
        if mask is None or value is None or not isinstance(op.base, ast.Name):
            return None
        chosen = "torch.where({m}, {t}, {x})"
        template = f"{{x}}.copy_({chosen})" if op.name.endswith("_") else chosen
        draft.replace(site.node, template, x=op.base, m=mask, t=value)
        return draft.fix("choose between the two", Safety.UNSAFE, PROMOTED)
    if op.name in ("clamp", "clip"):
        low, high = op.argument(0, "min"), op.argument(1, "max")
        if low is None or high is None or not function.pure(high):
            return None
        draft.replace(site.node, "{x}.clamp(min={low}).clamp(max={high})", x=op.base, low=low, high=high)
        return draft.fix("clamp one side at a time", Safety.UNSAFE, f"gradients flow to the bound too; {PROMOTED}")
    return None


def number(fact: Fact) -> bool:
    """Whether this is a tensor without dimensions that may be on the device."""
    return fact.kind is Value.TENSOR and fact.ndim == 0 and fact.device is not Device.HOST
