"""Parameters of a distribution that are valid by how they are computed: `Normal(mean, spread.exp())`, `Categorical(logits=x)`.

Its checks can then find nothing but NaN, and a number that was rounded down to zero. Domains are those of
https://pytorch.org/docs/stable/distributions.html.
"""

from __future__ import annotations

import ast

from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.project.syntax import name_of

REAL, POSITIVE, UNIT = "real", "positive", "between 0 and 1"
DOMAINS = {
    "Normal": {"loc": REAL, "scale": POSITIVE},
    "LogNormal": {"loc": REAL, "scale": POSITIVE},
    "Laplace": {"loc": REAL, "scale": POSITIVE},
    "Cauchy": {"loc": REAL, "scale": POSITIVE},
    "Gumbel": {"loc": REAL, "scale": POSITIVE},
    "StudentT": {"df": POSITIVE, "loc": REAL, "scale": POSITIVE},
    "HalfNormal": {"scale": POSITIVE},
    "HalfCauchy": {"scale": POSITIVE},
    "Exponential": {"rate": POSITIVE},
    "Poisson": {"rate": POSITIVE},
    "Gamma": {"concentration": POSITIVE, "rate": POSITIVE},
    "Beta": {"concentration1": POSITIVE, "concentration0": POSITIVE},
    "Categorical": {"probs": UNIT, "logits": REAL},
    "OneHotCategorical": {"probs": UNIT, "logits": REAL},
    "Bernoulli": {"probs": UNIT, "logits": REAL},
}
OPTIONAL = ("loc", "scale", "probs", "logits")  # what may be left out
GROW = ("exp", "softplus", "ones_like", "new_ones", "cosh", "rsqrt")
NO_LESS = ("abs", "square", "relu", "sigmoid", "softmax", "sqrt")  # than zero, which a constant is added to
SHARES = ("sigmoid", "softmax")
SHAPED = ("unsqueeze", "expand", "expand_as", "view", "reshape", "repeat", "squeeze", "contiguous", "float", "to")


def valid_by_construction(function: Function, made: ast.Call) -> bool:
    """Whether every parameter of a distribution of `torch.distributions` is surely valid, but for NaN and rounding."""
    domains = DOMAINS.get((function.dotted(made.func) or "").rpartition(".")[2])
    if domains is None or len(made.args) > len(domains) or any(isinstance(a, ast.Starred) for a in made.args):
        return False
    given = dict(zip(domains, made.args, strict=False)) | {k.arg: k.value for k in made.keywords if k.arg is not None}
    if not given.keys() <= domains.keys() or any(n not in given for n in domains if n not in OPTIONAL):
        return False
    return all(domains[n] is REAL or surely(function, value, domains[n]) for n, value in given.items())


def surely(function: Function, value: ast.expr, domain: str, depth: int = 0) -> bool:
    """Whether a value is computed so that it lies in a domain, POSITIVE or UNIT."""
    node, number = function.value(value), function.constant(value)
    if number is not None:
        return number > 0 if domain is POSITIVE else 0 <= number <= 1
    if depth > 4:
        return False
    match node:
        case ast.Call() as call:
            word = name_of(call.func) or ""
            own = isinstance(call.func, ast.Attribute) and function.dotted(call.func) is None
            first = call.func.value if own and isinstance(call.func, ast.Attribute) else next(iter(call.args), None)
            if word in SHAPED and own and first is not None:
                return surely(function, first, domain, depth + 1)
            least = seen(function, call, "{x}.clamp(min={c})", "{x}.clamp_min({c})", "torch.clamp({x}, min={c})")
            if domain is POSITIVE and least is not None:
                return (function.constant(least["c"]) or 0) > 0
            if word == "sqrt" and first is not None and domain is POSITIVE:
                return surely(function, first, domain, depth + 1)
            return word in (GROW if domain is POSITIVE else SHARES)
        case ast.BinOp(left=left, op=ast.Add(), right=right) if domain is POSITIVE:
            sides = (left, right)
            more = [surely(function, side, domain, depth + 1) for side in sides]
            least_is_zero = [name_of(s.func) in NO_LESS for s in map(function.value, sides) if isinstance(s, ast.Call)]
            return all(more) or (any(more) and any(least_is_zero))
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div(), right=right) if domain is POSITIVE:
            return surely(function, left, domain, depth + 1) and surely(function, right, domain, depth + 1)
    return False
