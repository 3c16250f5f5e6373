"""A distribution with `validate_args=False`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from syncscope.codemod.caught import caught
from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.valid_parameters import valid_by_construction
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety
from syncscope.rewrites import LEAST

ASKED = ("log_prob", "cdf")  # what looks into a value
# a 0 is a probability
CLOSED = "Categorical", "Bernoulli", "OneHotCategoricalStraightThrough", "Multinomial", "Binomial"

OVER_OTHERS = ("torch.distributions.Independent", "torch.distributions.independent.Independent")

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
        Safety.SUGGEST,
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
        Safety.SUGGEST,
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
        Safety.SUGGEST,
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
    own = checked(site, function)
    if own is None:
        return None
    same = function.once(f"checks, {site.hot}, {own.valid}", function.scope, lambda: alike(site, own, function))
    return fix_of(function, same if own.call in [each.call for each in same] else [own])


class CheckedCall(NamedTuple):
    """What makes a distribution that checks what it is given."""

    call: ast.Call
    valid: bool  # whether its parameters surely are
    closed: bool  # whether a 0 among them is
    unasked: bool  # whether no value is looked into
    asked_by: str  # the method that looks into a value, where only one does
    spread: str  # what is given as `**parameters`, "" where nothing is


def checked(site: Site, function: Function) -> CheckedCall | None:
    """What a site waits for the checks of, where nobody catches their errors."""
    call: ast.AST | None = site.node
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name() as kept)):
            call = function.maker(kept) or call  # dist.log_prob(x): what made dist
        case ast.Call(func=ast.Attribute(value=ast.Call() as made_there)):
            call = made_there  # Normal(0, s).log_prob(x)
    call = made_inside(call, function)
    if call is None or any(k.arg == "validate_args" for k in call.keywords):
        return None
    made: ast.AST | None = function.parent(call)
    while made is not None and is_over_others(made, function):
        made = function.parent(made)
    uses = function.seen_by(made) if isinstance(made, ast.Assign) else []
    if any(caught(function, each) for each in (call, *uses)):
        return None
    closed = any(k.arg == "logits" for k in call.keywords) or (function.dotted(call.func) or "").endswith(CLOSED)
    spread = next((ast.unparse(k.value) for k in call.keywords if k.arg is None), "")
    valid, unasked = valid_by_construction(function, call), surely_unasked(function, call, uses)
    methods = {
        n.attr for n in map(function.parent, uses or (call,)) if isinstance(n, ast.Attribute) and n.attr in ASKED
    }
    return CheckedCall(call, valid, closed, unasked, methods.pop() if len(methods) == 1 else ASKED[0], spread)


def made_inside(made: ast.AST | None, function: Function) -> ast.Call | None:
    """The call that makes a distribution of torch, or what one is made of: `Normal(m, s)` of `Independent(Normal(m, s), 1)`."""
    if not isinstance(made, ast.Call):
        return None
    if is_over_others(made, function):
        given = [*made.args, *(k.value for k in made.keywords if k.arg == "base_distribution")][:1]
        inner = next((function.maker(each) if isinstance(each, ast.Name) else each for each in given), None)
        return made_inside(inner, function)
    own = (function.dotted(made.func) or "").startswith("torch.distributions.")
    return made if own or is_over_others(function.parent(made), function) else None


def is_over_others(node: ast.AST | None, function: Function) -> bool:
    """Whether a call makes what asks the distribution that it is made of, and checks nothing itself."""
    return isinstance(node, ast.Call) and function.dotted(node.func) in OVER_OTHERS


def alike(site: Site, own: CheckedCall, function: Function) -> list[CheckedCall]:
    """All distributions of a function that are as valid, and hot if this one is: those that still checked would wait as long.

    Of one that stands in another the outer is left for later.
    """
    found = {own.call: own}
    for other in function.sites:
        if other.op is site.op and other.hot is site.hot and other.confidence >= LEAST:
            each = checked(other, function)
            if each is not None and each.valid is own.valid:
                found.setdefault(each.call, each)
    around = {above for call in found for above in function.around(call)}
    return sorted((e for e in found.values() if e.call not in around), key=lambda e: function.file.span(e.call))


def fix_of(function: Function, every: Sequence[CheckedCall]) -> Fix:
    """The fix that leaves out the checks of all these."""
    draft = Draft(function)
    for each in every:
        draft.replace(each.call, "{call}", call=draft.call(each.call, {}, validate_args="False"))
    if not all(each.valid for each in every):
        unseen = "parameters and values that are not valid no longer raise an error"
        named = (f"`{s}` may not name validate_args itself" for s in dict.fromkeys(e.spread for e in every) if s)
        return draft.fix("leave the checks out", Safety.SUGGEST, unseen, *named)
    zero = "" if all(each.closed for each in every) else ", or a 0,"
    by = " or ".join(dict.fromkeys(each.asked_by for each in every if not each.unasked))
    beside = f"nor does a value given to {by} that it cannot take" if by else ""
    its = "its" if len(every) == 1 else "their"
    no_error = f"NaN in {its} parameters{zero} no longer raises an error"
    return draft.fix("leave the checks out", Safety.SUGGEST, no_error, beside)


def surely_unasked(function: Function, call: ast.Call, uses: Sequence[ast.expr]) -> bool:
    """Whether nothing looks into a value: every use of the distribution is seen, and is another method or a divergence."""
    named = isinstance(function.parent(call), ast.Assign)
    seen = [function.parent(use) for use in (uses if named else (call,))]
    return bool(seen) and all(
        (isinstance(n, ast.Attribute) and n.attr not in ASKED)
        or (isinstance(n, ast.Call) and (function.dotted(n.func) or "").endswith("kl_divergence"))
        for n in seen
    )
