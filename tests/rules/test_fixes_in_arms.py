"""What the test of an arm says of a value is known to the fixes in it, and of no value behind it."""

from textwrap import dedent

import pytest
from rules.driver import EVERY, HEAD, fixed

FIXED = {
    "a tensor in its arm, a number in the next": (
        """
        def sample(mean: torch.Tensor, std):
            if isinstance(std, torch.Tensor):
                if std.max() > 3:
                    std = std.clamp(max=3)
                return torch.normal(mean, std)
            elif isinstance(std, float):
                return mean + std
        """,
        "std = torch.where(std.max() > 3, std.clamp(max=3), std)",
    ),
    "a number behind an early return": (
        """
        def scaled(x: torch.Tensor, t):
            if not isinstance(t, (int, float)):
                return x * t[0]
            return x * torch.tensor(t, device=x.device)
        """,
        "return x * t\n",
    ),
    "a number, as the test has a name": (
        """
        def scaled(x: torch.Tensor, t):
            single = isinstance(t, float)
            if single:
                return x * torch.tensor(t, device=x.device)
            return x * t[0]
        """,
        "return x * t\n",
    ),
    "what is left of a Union": (
        """
        def clamped(x: torch.Tensor, low: float | torch.Tensor):
            if not torch.is_tensor(low):
                low = torch.tensor([low], device=x.device)
            return x.clamp(low[0])
        """,
        "torch.full((1,), low, device=x.device)",
    ),
    "a number by its pattern": (
        """
        def scaled(x: torch.Tensor, t):
            match t:
                case int() | float():
                    return x * torch.tensor(t, device=x.device)
                case list():
                    return x * t[0]
        """,
        "return x * t\n",
    ),
}
KEPT = {
    "several numbers, or one": """
        def scaled(x: torch.Tensor, t: float | list[float] | torch.Tensor):
            if not torch.is_tensor(t):
                t = torch.tensor(t, device=x.device)
            return x * t[0]
    """,
    "a tensor or a number, and asked later": """
        def sample(mean: torch.Tensor, std: torch.Tensor):
            if std.max() > 3:
                std = std.clamp(max=3)
            if isinstance(std, float):
                return mean + std
    """,
}


@pytest.mark.parametrize(("code", "new"), FIXED.values(), ids=FIXED)
def test_what_a_test_says_is_known_to_fixes_in_its_arm(code: str, new: str) -> None:
    assert new in fixed(HEAD + dedent(code), allowed=EVERY)


@pytest.mark.parametrize("code", KEPT.values(), ids=KEPT)
def test_what_no_test_has_said_stays_open_to_fixes(code: str) -> None:
    new = fixed(HEAD + dedent(code), allowed=EVERY)
    assert "torch.full" not in new
    assert "torch.where" not in new


@pytest.mark.parametrize(
    ("yes", "no", "chosen"),
    [
        ("torch.stack([1 - x, x], dim=1)", "x", False),
        ("x.exp().unsqueeze(1)", "x", False),
        ("x", "x[:, None].exp()", False),
        ("torch.nn.functional.one_hot(x, 3)", "x", False),
        ("column.exp()", "x", False),
        ("column.exp()", "x.unsqueeze(-1)", True),
        ("x.exp()", "y", True),
    ],
)
def test_ways_of_other_dimensions_are_not_mixed(yes: str, no: str, chosen: bool) -> None:
    code = "def f(x: torch.Tensor, y: torch.Tensor):\n    column = x[:, None]\n"
    code += f"    if (x > 1).any():\n        z = {yes}\n    else:\n        z = {no}\n    return z, column\n"
    assert ("torch.where" in fixed(HEAD + code, allowed=EVERY)) is chosen
