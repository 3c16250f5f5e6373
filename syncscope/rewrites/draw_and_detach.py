"""`Normal(mean, std).sample()` as `.rsample().detach()`: the same numbers, and nobody asks whether a deviation is negative."""

from __future__ import annotations

import ast

from syncscope.codemod.caught import caught
from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.distributions import drawing, in_no_grad
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Edit, Fix, Safety
from syncscope.model.source import Span

DRAWN = ("Normal", "LogNormal", "HalfNormal", "LogisticNormal")
LONG = True
EXAMPLES = (
    Example(
        """
        import torch
        from torch.distributions import Independent, Normal

        def act(mean: torch.Tensor, log_std: torch.Tensor):
            policy = Normal(mean, log_std.exp(), validate_args=False)
            with torch.no_grad():
                tried = Independent(policy, 1, validate_args=False).sample((4,))  # !
            return policy.sample(), tried  # !
        """,
        """
        import torch
        from torch.distributions import Independent, Normal

        def act(mean: torch.Tensor, log_std: torch.Tensor):
            policy = Normal(mean, log_std.exp(), validate_args=False)
            with torch.no_grad():
                tried = Independent(policy, 1, validate_args=False).rsample((4,))
            return policy.rsample().detach(), tried
        """,
        Safety.UNSAFE,
    ),
)
CHANGES = "a negative deviation raises no error here, only where the distribution checks its parameters"


def rewrite(site: Site, function: Function) -> Fix | None:
    call = site.node
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "sample"):
        return None
    if drawing(function, call.func.value) not in DRAWN or function.printed(call) or caught(function, call):
        return None
    draft, end = Draft(function), function.file.span(call.func).end
    draft.edits.append(Edit(Span(end - len("sample"), end), "rsample"))
    if not in_no_grad(function, call):
        end = function.file.span(call).end
        draft.edits.append(Edit(Span(end, end), ".detach()"))
    return draft.fix("draw with `rsample`, which does not look", Safety.UNSAFE, CHANGES)
