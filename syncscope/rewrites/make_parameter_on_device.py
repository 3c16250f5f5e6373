"""`Normal(mean, 1.0)` as `Normal(mean, mean.new_ones(()))`.

It waits for policies of a fixed spread: `Normal(mean, 0.1)`, as actors of TD3 and DDPG draw their noise.
"""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.numbers import new_number
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

EXAMPLES = (
    Example(
        """
        import torch
        from torch.distributions import Normal

        def loss(mean: torch.Tensor, x: torch.Tensor):
            return -Normal(mean, 1.0, validate_args=False).log_prob(x).mean()  # !
        """,
        """
        import torch
        from torch.distributions import Normal

        def loss(mean: torch.Tensor, x: torch.Tensor):
            return -Normal(mean, mean.new_ones(()), validate_args=False).log_prob(x).mean()
        """,
        Safety.SAFE,
        "mean: float[n]; x: finite[n]",
    ),
    Example(
        """
        import torch
        from torch import distributions

        def loss(spread: torch.Tensor, x: torch.Tensor):
            spread = spread.exp()
            return -distributions.Laplace(loc=0, scale=spread, validate_args=False).log_prob(x).mean()  # !
        """,
        """
        import torch
        from torch import distributions

        def loss(spread: torch.Tensor, x: torch.Tensor):
            spread = spread.exp()
            return -distributions.Laplace(loc=spread.new_zeros(()), scale=spread, validate_args=False).log_prob(x).mean()
        """,
        Safety.SAFE,
        "spread: float[n]; x: finite[n]",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    call, number = site.node, site.operand
    if site.fact.confidence < 2 or number is None or not isinstance(call, ast.Call):
        return None
    given = [*call.args, *(k.value for k in call.keywords if k.arg != "validate_args")]
    beside = [value for value in given if site.fact_of(value).is_tensor]
    written = function.constant(number)
    if len(beside) != 1 or len(given) != 2 or not isinstance(beside[0], ast.Name):
        return None
    if written is None or abs(written) > 127:  # what overflows a dtype is reported in other words
        return None
    draft = Draft(function)
    draft.replace(number, "{number}", number=new_number(draft, beside[0], number))
    return draft.fix("make the number on the device", Safety.SAFE)
