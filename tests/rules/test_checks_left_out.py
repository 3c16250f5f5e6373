"""What a fix that leaves out the checks of a distribution says of them: those of parameters, and those of values."""

import pytest

pytest.importorskip("libcst")

from rules.driver import findings

HEAD = "import torch\nfrom torch.distributions import Categorical, Normal, kl_divergence\n\n\n"
VALUES = "nor does a value given to log_prob"


def said(body: str) -> str:
    """What the fix of the first distribution changes."""
    code = f"{HEAD}def f(x: torch.Tensor, a: torch.Tensor, kind: str):\n{body}"
    return next(f.fix.changes for f in findings(code) if f.fix is not None and f.fix.rewrite == "drop_validation")


@pytest.mark.parametrize(
    "body",
    [
        "    return Normal(x, x.exp()).log_prob(a)\n",
        "    p = Categorical(logits=x)\n    return p.log_prob(a)\n",
        "    if kind:\n        p = Categorical(logits=x)\n    else:\n        p = Normal(x, 1)\n    return p.log_prob(a)\n",
        "    return Categorical(logits=x)\n",
    ],
)
def test_a_value_that_is_or_may_be_looked_into_is_named(body: str) -> None:
    assert VALUES in said(body)


@pytest.mark.parametrize(
    "body",
    [
        "    p = Normal(x, x.exp())\n    return p.rsample()\n",
        "    return Categorical(logits=x).entropy()\n",
        "    return kl_divergence(Normal(x, x.exp()), Normal(x, a.exp()))\n",
    ],
)
def test_no_value_is_named_where_none_is_looked_into(body: str) -> None:
    assert VALUES not in said(body)


def test_a_zero_is_named_where_it_is_not_valid() -> None:
    assert "a 0" not in said("    return Categorical(logits=x).sample()\n")
    assert "a 0" not in said("    return Categorical(x.softmax(-1)).sample()\n")
    assert "a 0" in said("    return Normal(x, x.exp()).sample()\n")


@pytest.mark.parametrize(
    ("made", "mended"),
    [
        ("Independent(Normal(**x), 1)", "Normal(**x, validate_args=False)"),
        ("Independent(cls(**x), 1)", "cls(**x, validate_args=False)"),
        ("Independent(Independent(cls(**x), 1), 1)", "cls(**x, validate_args=False)"),
    ],
)
def test_what_is_inside_of_another_is_what_checks(made: str, mended: str) -> None:
    code = HEAD.replace("Normal", "Independent, Normal")
    code += f"def f(x: dict[str, torch.Tensor], cls, a: torch.Tensor):\n    d = {made}\n    return d.log_prob(a)\n"
    fixes = [f.fix for f in findings(code)]
    assert [edit.text for fix in fixes for edit in fix.edits] == [mended] * 2
    assert all(fix.changes.endswith("`x` may not name validate_args itself") for fix in fixes)


def test_a_cumulative_probability_is_of_a_value() -> None:
    """The parameters are numbers: what is looked into is what is asked about."""
    code = "import torch\nfrom torch.distributions import Normal\n\n\n"
    code += "def ncdf(x: torch.Tensor):\n    return Normal(0.0, 1.0).cdf(x.cuda())\n"
    (finding,) = findings(code, "distribution-validation")
    assert "checks whether `x.cuda()` can be drawn and waits" in finding.message
    assert finding.fix is None or "log_prob" not in finding.fix.changes
