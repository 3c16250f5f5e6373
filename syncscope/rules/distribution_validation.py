"""A `torch.distributions` distribution over tensors of the device, with its checks on.

Why it waits
------------
By default a distribution checks its parameters when it is made, and values in `log_prob`: each check asks whether all are
valid, and the host waits for the answer. `validate_args=False` leaves that out, as `python -O` does for all.

Fix safety
----------
Unsafe, because parameters that are not valid no longer raise an error.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example, Family, Function, Severity, View

FAMILY = Family.LIBRARY
SEVERITY = Severity.WARNING
OPS = ("distribution_validate",)
SEEN_AS = ("aten::is_nonzero", "aten::item", "aten::_local_scalar_dense")
EXAMPLES = (
    Example(
        """
        import torch
        from torch.distributions import Normal

        def loss(mean: torch.Tensor, spread: torch.Tensor, x: torch.Tensor):
            return -Normal(mean, spread.exp()).log_prob(x).mean()  # !
        """,
        """
        import torch
        from torch.distributions import Normal

        def loss(mean: torch.Tensor, spread: torch.Tensor, x: torch.Tensor):
            return -Normal(mean, spread.exp(), validate_args=False).log_prob(x).mean()
        """,
        Safety.UNSAFE,
        "mean: finite[n]; spread: finite[n]; x: finite[n]",
    ),
    Example(
        """
        import torch
        from torch.distributions import Categorical

        def loss(logits: torch.Tensor, action: torch.LongTensor):
            policy = Categorical(logits=logits)  # !
            return -policy.log_prob(action).mean() - policy.entropy().mean()  # !
        """,
        """
        import torch
        from torch.distributions import Categorical

        def loss(logits: torch.Tensor, action: torch.LongTensor):
            policy = Categorical(logits=logits, validate_args=False)
            return -policy.log_prob(action).mean() - policy.entropy().mean()
        """,
        Safety.UNSAFE,
        "logits: finite[n, 4]; action: index[n] < 4",
    ),
)


def message(site: Site, view: View) -> str | None:
    return (
        f"{view.quote(site.node)} checks its parameters and waits for the answer: validate_args=False leaves that out"
    )


def rewrite(site: Site, function: Function) -> Fix | None:
    call: ast.AST | None = site.node
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        call = function.maker(call.func.value) or call  # dist.log_prob(x): what made dist
    if (
        not isinstance(call, ast.Call)
        or not (function.dotted(call.func) or "").startswith("torch.distributions.")
        or any(k.arg in ("validate_args", None) for k in call.keywords)
    ):
        return None
    draft = function.draft()
    draft.replace(call, "{call}", call=draft.call(call, {}, validate_args="False"))
    return draft.fix(
        "leave the checks out", Safety.UNSAFE, "parameters and values that are not valid no longer raise an error"
    )
