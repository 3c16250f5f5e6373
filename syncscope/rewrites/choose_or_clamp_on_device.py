"""`x.masked_fill(m, t)` as `torch.where(m, t, x)`, or with the number that t is made of; `x.clamp(0, t)` as
`x.clamp(min=0).clamp(max=t)`.
"""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.numbers import PROMOTED, number_on_device, written_out
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

ROUNDS = True
EXAMPLES = (
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
    Example(
        """
        import torch

        def forward(x: torch.Tensor, keep: torch.BoolTensor):
            y = x.masked_fill(keep, torch.tensor(0.5, device=x.device))  # !
            return y.masked_fill(y > 1, torch.full((), float("-inf"), device=x.device))  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, keep: torch.BoolTensor):
            y = x.masked_fill(keep, 0.5)
            return y.masked_fill(y > 1, float("-inf"))
        """,
        Safety.UNSAFE,
        "x: normal[n + 1, m + 1]; keep: bool[n + 1, 1]",
    ),
)

MADE = (
    "torch.tensor({n}, **_)",
    "torch.as_tensor({n}, **_)",
    "{x}.new_tensor({n}, **_)",
    "torch.full((), {n}, **_)",
    "{x}.new_full((), {n}, **_)",
)


def rewrite(site: Site, function: Function) -> Fix | None:
    op = function.op(site.node)
    if op is None or not isinstance(site.node, ast.expr):
        return None
    draft = Draft(function)
    given = op.argument(1, "value") if op.name in ("masked_fill", "masked_fill_") else None
    if given is not None and (number := number_of(function, given)) is not None:
        draft.replace(given, "{n}", n=number)
        return draft.fix("give the number", Safety.UNSAFE, "no dtype rounds it but that of what is filled")
    if not number_on_device(site.fact):
        return None
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
        return draft.fix("clamp one side at a time", Safety.UNSAFE, "gradients flow to the bound too", PROMOTED)
    return None


def number_of(function: Function, made: ast.expr) -> ast.expr | None:
    """The number that is written out in what makes a tensor of it alone: `torch.tensor(0.5, device=d)`, also sent somewhere."""
    sent = seen(function, made, "{t}.to(*_, **_)", "{t}.cuda(*_, **_)")
    found = seen(function, sent["t"] if sent is not None else made, *MADE)
    return found["n"] if found is not None and written_out(function, found["n"]) else None
