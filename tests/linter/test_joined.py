"""Fixes of several rules in one statement are one where they are as safe, and mend nothing elsewhere."""

from syncscope.linter.config import Config
from syncscope.linter.engine import check

CODE = """
import torch

def forward(x: torch.Tensor, n: int):
    x = x.cuda()
    y = x[torch.arange(n)] * torch.ones(n).cuda(){}
    return y
"""


def fixes(code: str) -> set[str]:
    return {f.fix.title for f in check("x.py", code.encode(), Config()).findings if f.fix is not None}


def test_what_one_statement_waits_for_is_mended_by_one_fix() -> None:
    (title,) = fixes(CODE.format(""))
    assert title == "make the index on the device; make it on the device"


def test_fixes_that_are_not_as_safe_stay_apart() -> None:
    apart = fixes(CODE.format("").replace("torch.ones", "torch.randn"))
    assert apart == {"make the index on the device", "make it on the device"}
