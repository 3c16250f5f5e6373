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
}
KEPT = {
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
    code = HEAD + dedent(code)
    assert fixed(code, allowed=EVERY) == code
