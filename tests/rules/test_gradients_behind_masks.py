"""What is computed of what a mask selects has a gradient there only: computed of all, nothing of the rest becomes NaN."""

import pytest
from rules.driver import FIXES, fixed

torch = pytest.importorskip("torch")

HEAD = "import torch\nimport torch.nn.functional as F\n\n\n"
CODE = {
    "an exponential that overflows": """
def f(x: torch.Tensor):
    out = x * 1.0
    out[out > 1] = torch.exp(-out[out > 1]) + 2
    return out
""",
    "a root": """
def f(x: torch.Tensor):
    out = x.abs()
    out[out > 1] = out[out > 1].sqrt()
    return out
""",
    "a power of a fraction": """
def f(x: torch.Tensor):
    out = x * 1.0
    m = out > 0
    out[m] = 1.055 * out[m] ** (1 / 2.4) - 0.055
    return out
""",
    "a quotient": """
def f(x: torch.Tensor):
    out, y = x * 1.0, x * 2
    m = y != 0
    out[m] = 3 / y[m]
    return out
""",
    "a quotient in place": """
def f(x: torch.Tensor):
    out = x * 1.0
    m = out > 0.5
    out[m] /= out[m]
    return out
""",
    "an entropy": """
def f(p: torch.Tensor):
    m = p > 0
    return -(p[m] * p[m].log()).sum()
""",
    "a relative error": """
def f(p: torch.Tensor):
    m = p > 0
    return ((p[m] - 2) / p[m]).abs().mean()
""",
    "a loss of logarithms": """
def f(p: torch.Tensor):
    m = p > 0
    return F.l1_loss(p[m].log(), p[m].square())
""",
    "a selection with a name": """
def f(p: torch.Tensor):
    kept = p[p > 0]
    return kept.log().sum() / len(kept)
""",
}


@pytest.mark.parametrize("code", CODE.values(), ids=CODE)
def test_the_gradient_is_as_before(code: str) -> None:
    after = fixed(HEAD + code, "boolean-mask-read", "boolean-mask-write")
    assert "torch.where(" in after
    results = []
    for text in (HEAD + code, after):
        space: dict[str, object] = {}
        exec(text, space)
        x = torch.tensor([-400.0, -1.0, 0.0, 0.25, 1.5, 400.0], requires_grad=True)
        value = space["f"](x)
        value.sum().backward()
        results.append((value, x.grad))
    for was, is_now in zip(*results, strict=True):
        torch.testing.assert_close(is_now, was)
        assert is_now.isfinite().all()


def test_a_whole_power_needs_no_other_number() -> None:
    code = "def f(x: torch.Tensor):\n    out = x * 2\n    out[out > 1] = out[out > 1] ** 2\n    return out\n"
    assert "out = torch.where(out > 1, out ** 2, out)" in fixed(HEAD + code, "boolean-mask-write")


@pytest.mark.parametrize("way", ["total.sqrt()", "torch.log(total)", "total ** 0.5", "torch.exp(-total)"])
def test_what_a_condition_keeps_from_being_computed_is_left_to_people(way: str) -> None:
    code = f"def f(x: torch.FloatTensor):\n    total = x.sum()\n    return {way} if total > 0 else total\n"
    assert fixed(HEAD + code, "tensor-in-condition", allowed=FIXES) == HEAD + code
    assert f"torch.where(total > 0, {way}, total)" in fixed(HEAD + code, "tensor-in-condition")
