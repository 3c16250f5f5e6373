"""A distribution with `validate_args=False`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.layout import caught
from syncscope.codemod.patterns.valid_parameters import valid_by_construction
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

ASKED = ("log_prob", "cdf")  # what looks into a value
CLOSED = (
    "Categorical",
    "Bernoulli",
    "OneHotCategoricalStraightThrough",
    "Multinomial",
    "Binomial",
)  # a 0 is a probability

CLEARS = True
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
    Example(
        """
        import torch
        from torch.distributions import Normal

        def divergence(mean: torch.Tensor, variance: torch.Tensor):
            spread = torch.nn.functional.softplus(variance) + 1e-4
            prior = Normal(torch.zeros_like(mean), torch.ones_like(mean))  # !
            return torch.distributions.kl_divergence(Normal(mean, spread.sqrt()), prior)  # !
        """,
        """
        import torch
        from torch.distributions import Normal

        def divergence(mean: torch.Tensor, variance: torch.Tensor):
            spread = torch.nn.functional.softplus(variance) + 1e-4
            prior = Normal(torch.zeros_like(mean), torch.ones_like(mean), validate_args=False)
            return torch.distributions.kl_divergence(Normal(mean, spread.sqrt(), validate_args=False), prior)
        """,
        Safety.UNSAFE,
        "mean: finite[n]; variance: finite[n]",
    ),
    Example(
        """
        import torch
        from torch.distributions import Normal

        def sample(mean: torch.Tensor, spread: torch.Tensor):
            return Normal(mean, spread).rsample()  # !
        """,
        """
        import torch
        from torch.distributions import Normal

        def sample(mean: torch.Tensor, spread: torch.Tensor):
            return Normal(mean, spread, validate_args=False).rsample()
        """,
        Safety.SUGGEST,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    call: ast.AST | None = site.node
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name() as kept)):
            call = function.maker(kept) or call  # dist.log_prob(x): what made dist
        case ast.Call(func=ast.Attribute(value=ast.Call() as made_there)):
            call = made_there  # Normal(0, s).log_prob(x)
    if (
        not isinstance(call, ast.Call)
        or not (function.dotted(call.func) or "").startswith("torch.distributions.")
        or any(k.arg in ("validate_args", None) for k in call.keywords)
    ):
        return None
    made = function.parent(call)
    uses = function.seen_by(made) if isinstance(made, ast.Assign) else []
    if any(caught(function, each) for each in (call, *uses)):
        return None
    draft = Draft(function)
    draft.replace(call, "{call}", call=draft.call(call, {}, validate_args="False"))
    if not valid_by_construction(function, call):
        unseen = "parameters and values that are not valid no longer raise an error"
        return draft.fix("leave the checks out", Safety.SUGGEST, unseen)
    closed = any(k.arg == "logits" for k in call.keywords) or (function.dotted(call.func) or "").endswith(CLOSED)
    unseen = f"NaN in its parameters{'' if closed else ', or a 0,'} no longer raises an error"
    beside = "" if surely_unasked(function, call, uses) else "; nor does a value given to log_prob that it cannot take"
    return draft.fix("leave the checks out", Safety.UNSAFE, unseen + beside)


def surely_unasked(function: Function, call: ast.Call, uses: Sequence[ast.expr]) -> bool:
    """Whether nothing looks into a value: every use of the distribution is seen, and is another method or a divergence."""
    named = isinstance(function.parent(call), ast.Assign)
    seen = [function.parent(use) for use in (uses if named else (call,))]
    return bool(seen) and all(
        (isinstance(n, ast.Attribute) and n.attr not in ASKED)
        or (isinstance(n, ast.Call) and (function.dotted(n.func) or "").endswith("kl_divergence"))
        for n in seen
    )
