"""Ones that are added up in bins pay for few values only."""

import pytest
from rules.driver import HEAD, findings


@pytest.mark.parametrize(
    ("size", "offered"), [("(n,)", True), ("(30_000,)", True), ("(4_000_000,)", False), ("size=(16_777_216,)", False)]
)
def test_no_fix_makes_many_values_slower_and_what_is_offered_says_so(size: str, offered: bool) -> None:
    code = (
        "def f(x: torch.Tensor, n: int):\n"
        f"    label = torch.randint(0, 4, {size}, device=x.device)\n"
        "    return torch.bincount(label, minlength=4)\n"
    )
    (found,) = findings(HEAD + code, "bincount")
    assert (found.fix is not None) == offered
    if found.fix is not None:
        assert "million" in found.fix.changes
        assert "assertion on the device" in found.fix.changes


@pytest.mark.parametrize(("made", "offered"), [("target", True), ("target.long()", True), ("target.float()", False)])
def test_what_is_counted_is_whole_where_nothing_says_otherwise(made: str, offered: bool) -> None:
    code = f"def f(target: torch.Tensor):\n    label = {made}\n    return torch.bincount(label, minlength=4)\n"
    (found,) = findings(HEAD + code, "bincount")
    assert (found.fix is not None) == offered
