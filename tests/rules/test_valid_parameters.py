"""A distribution whose parameters are valid by how they are computed: its checks find nothing, and can be left out."""

import pytest
from rules.driver import findings

from syncscope.model.finding import Safety

torch = pytest.importorskip("torch")

CODE = """
import torch
import torch.nn.functional as F
from torch.distributions import Bernoulli, Beta, Categorical, Dirichlet, Gamma, Laplace, NegativeBinomial, Normal, Poisson

def f(x: torch.Tensor, s: torch.Tensor):
    v = F.softplus(s) + 1e-3
    return {}.mean
"""
VALID = (
    "Normal(x, s.exp())",
    "Normal(loc=x, scale=torch.exp(0.5 * s))",
    "Normal(x, v.sqrt())",
    "Normal(x, s.abs() + 1e-5)",
    "Normal(torch.zeros_like(x), 1.0 * torch.ones_like(x))",
    "Laplace(x, s.clamp(min=1e-3))",
    "Beta(F.softplus(s) + 1, v)",
    "Gamma(s.exp(), 2.0)",
    "Poisson(s.exp().unsqueeze(0))",
    "Normal(torch.tensor([0.0]).to(x.device), torch.tensor([1.0, 2.0, 1.0, 3.0]).to(x.device))",
    "Normal(x, torch.full_like(x, 0.5))",
    "Categorical(logits=x)",
    "Categorical(probs=x.softmax(-1))",
    "Categorical(x.exp())",
    "Categorical(torch.ones_like(x))",
    "Dirichlet(torch.nn.Softplus()(x) + 1e-3)",
    "NegativeBinomial(s.exp(), logits=x)",
    "Normal(x, torch.sigmoid(s) if s.ndim else v)",
    "Bernoulli(torch.sigmoid(x))",
)
BUT_FOR_NAN = ("Normal(x, s.sqrt())", "Normal(x, torch.sqrt(s))", "Gamma(s.sqrt(), 1.0)")
OTHER = (
    "Normal(x, s)",
    "Normal(x, s.abs())",
    "Normal(x, s.exp() - 1)",
    "Normal(x, s + 1e-5)",
    "Normal(x, s.clamp(min=0))",
    "Laplace(x, -s.exp())",
    "Categorical(x)",
    "Bernoulli(x)",
    "Bernoulli(s.exp())",
    "Gamma(s.exp(), s)",
    "Poisson(s.log())",
    "Normal(x, torch.tensor([1.0, -2.0, 1.0, 3.0]))",
    "Dirichlet(s)",
    "NegativeBinomial(s.exp(), probs=s.exp())",
)


BY_CONSTRUCTION = "NaN in "  # nothing else can be wrong


def changes(made: str) -> str:
    """What the fix says: it is suggested, whether the parameters are valid or not."""
    (fix,) = {f.fix for f in findings(CODE.format(made), "distribution-validation") if f.fix is not None}
    assert fix.safety is Safety.SUGGEST
    return fix.changes


@pytest.mark.parametrize("made", VALID)
def test_what_is_valid_by_construction_passes_its_checks(made: str) -> None:
    assert changes(made).startswith(BY_CONSTRUCTION)
    space: dict[str, object] = {}
    exec(CODE.format(made), space)
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        space["f"](*(torch.randn(3, 4, generator=generator) * 8 for _ in range(2)))


@pytest.mark.parametrize("made", BUT_FOR_NAN)
def test_a_root_fails_its_checks_for_nothing_but_nan(made: str) -> None:
    assert changes(made).startswith(BY_CONSTRUCTION)
    space: dict[str, object] = {}
    exec(CODE.format(made), space)
    x, s = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1))
    space["f"](x, s.abs())
    with pytest.raises(ValueError, match="nan"):
        space["f"](x, s)


@pytest.mark.parametrize("made", OTHER)
def test_of_anything_else_more_is_said(made: str) -> None:
    assert not changes(made).startswith(BY_CONSTRUCTION)
