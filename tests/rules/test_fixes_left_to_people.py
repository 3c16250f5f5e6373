"""Fixes that are right, and may make a step longer or a gradient NaN: they are suggested, and made by nobody but a person."""

import pytest
from rules.driver import findings

from syncscope.model.finding import Safety

HEAD = "import torch\n\n"
READ = """
def training_step(offsets: torch.LongTensor, known: list[int], count: int):
    total = 0
    for i in range(count):
        {read}
    return total
"""
CHOSEN = """
def training_step(x: torch.FloatTensor):
    y = x.exp()
    keep = y > 1
    y[keep] = {value}
    return y.sum()
"""
CASES = {
    "each pass reads": (READ.format(read="total += offsets[i].item()"), Safety.UNSAFE),
    "no pass may read": (
        READ.format(
            read="if i < len(known):\n            total += known[i]\n        else:\n            total += offsets[i].item()"
        ),
        Safety.SUGGEST,
    ),
    "a factor of what a mask selects": (CHOSEN.format(value="y[keep] * 2"), Safety.UNSAFE),
    "a quotient of what a mask selects": (CHOSEN.format(value="torch.sin(y[keep]) / y[keep]"), Safety.UNSAFE),
}


@pytest.mark.parametrize("case", CASES)
def test_how_far_it_is_trusted(case: str) -> None:
    code, safety = CASES[case]
    fixes = [f.fix for f in findings(HEAD + code) if f.fix is not None]
    assert {fix.safety for fix in fixes} == {safety}
