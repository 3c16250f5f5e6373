"""Parameters of a distribution that are valid by how they are computed: `Normal(mean, spread.exp())`, `Categorical(logits=x)`.

Its checks can then find nothing but NaN, as the root of a negative number is, and a zero, as one that was rounded down. Domains
are those of https://pytorch.org/docs/stable/distributions.html.
"""

from __future__ import annotations

import ast

from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.project.syntax import name_of

REAL, POSITIVE, UNIT, SHARE = "real", "positive", "between 0 and 1", "positive, and divided by their sum"
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
    "Dirichlet": {"concentration": POSITIVE},
    "NegativeBinomial": {"total_count": POSITIVE, "probs": UNIT, "logits": REAL},
    "Categorical": {"probs": SHARE, "logits": REAL},
    "OneHotCategorical": {"probs": SHARE, "logits": REAL},
    "Bernoulli": {"probs": UNIT, "logits": REAL},
}
OPTIONAL = ("loc", "scale", "probs", "logits")  # what may be left out
GROW = ("exp", "softplus", "Softplus", "ones", "ones_like", "new_ones", "cosh", "sigmoid", "softmax", "sqrt", "rsqrt")
NO_LESS = ("abs", "square", "relu", "sigmoid", "softmax", "sqrt")  # than zero, which a constant is added to
SHARES = ("sigmoid", "softmax", "ones", "ones_like", "zeros", "zeros_like")
FILLED = ("torch.tensor({c})", "torch.tensor({c}, device={d})", "torch.full({n}, {c})", "torch.full_like({x}, {c})")
SHAPED = ("unsqueeze", "expand", "expand_as", "view", "reshape", "repeat", "squeeze", "contiguous", "float", "to")


def valid_by_construction(function: Function, made: ast.Call) -> bool:
    """Whether every parameter of a distribution of `torch.distributions` is surely valid, but for NaN and rounding."""
    domains = DOMAINS.get((function.dotted(made.func) or "").rpartition(".")[2])
    if domains is None or len(made.args) > len(domains) or any(isinstance(a, ast.Starred) for a in made.args):
        return False
    if any(keyword.arg is None for keyword in made.keywords):  # `**parameters`
        return False
    given = dict(zip(domains, made.args, strict=False)) | {k.arg: k.value for k in made.keywords if k.arg is not None}
    if not given.keys() <= domains.keys() or any(n not in given for n in domains if n not in OPTIONAL):
        return False
    return all(domains[n] is REAL or surely(function, value, domains[n]) for n, value in given.items())


def surely(function: Function, value: ast.expr, domain: str, depth: int = 0) -> bool:
    """Whether a value is computed so that it lies in a domain, if it is neither NaN nor zero."""
    if domain is SHARE:
        domain = POSITIVE
    node, number = function.value(value), function.constant(value)
    if number is not None:
        return number > 0 if domain is POSITIVE else 0 <= number <= 1
    if depth > 4:
        return False
    match node:
        case ast.Call() as call:
            layer = call.func if isinstance(call.func, ast.Call) else call  # torch.nn.Softplus()(x)
            word = name_of(layer.func) or ""
            own = isinstance(call.func, ast.Attribute) and function.dotted(call.func) is None
            first = call.func.value if own and isinstance(call.func, ast.Attribute) else next(iter(call.args), None)
            if (filled := seen(function, call, *FILLED)) is not None:
                return all(surely(function, n, domain, depth + 1) for n in each_number(filled["c"]))
            if word in SHAPED and own and first is not None:
                return surely(function, first, domain, depth + 1)
            least = seen(function, call, "{x}.clamp(min={c})", "{x}.clamp_min({c})", "torch.clamp({x}, min={c})")
            if domain is POSITIVE and least is not None:
                return (function.constant(least["c"]) or 0) > 0
            return word in (GROW if domain is POSITIVE else SHARES)
        case ast.IfExp(body=one, orelse=other):
            return surely(function, one, domain, depth + 1) and surely(function, other, domain, depth + 1)
        case ast.BinOp(left=left, op=ast.Add(), right=right) if domain is POSITIVE:
            sides = (left, right)
            more = [surely(function, side, domain, depth + 1) for side in sides]
            least_is_zero = [name_of(s.func) in NO_LESS for s in map(function.value, sides) if isinstance(s, ast.Call)]
            return all(more) or (any(more) and any(least_is_zero))
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div(), right=right) if domain is POSITIVE:
            return surely(function, left, domain, depth + 1) and surely(function, right, domain, depth + 1)
    return False


def each_number(node: ast.expr) -> list[ast.expr]:
    """The numbers of a list that is written out, or the one that is none."""
    return list(node.elts) if isinstance(node, ast.List) else [node]
