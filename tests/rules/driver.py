"""Lints and fixes a piece of code with one rule, or with all."""

from __future__ import annotations

from collections.abc import Collection

from syncscope.linter.config import Config
from syncscope.linter.engine import check, check_source
from syncscope.linter.fixing import mend
from syncscope.model.finding import Finding, Safety

FIXES = {Safety.SAFE, Safety.UNSAFE}
EVERY = {*FIXES, Safety.SUGGEST}
HEAD = "import torch\n\n\n"


def config(*rules: str) -> Config:
    """Everything is shown: cold findings, unsure ones, what falls back to the CPU."""
    return Config(select=rules, all=True, measured=True, min_confidence="low", backend="ocl")


def findings(code: str, *rules: str) -> list[Finding]:
    """What these rules find; all rules where none is named."""
    return list(check("example.py", code.encode(), config(*rules)).findings)


def fixed(code: str, *rules: str, allowed: Collection[Safety] = tuple(Safety)) -> str:
    """The code after all fixes of these rules, by default the suggested ones too."""
    result = mend("example.py", code.encode(), lambda s: check_source(s, config(*rules)).findings, allowed)
    assert not result.refused, result.refused
    return result.raw.decode()
