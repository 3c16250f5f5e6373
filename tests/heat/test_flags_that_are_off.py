"""What stands behind a flag that is off, unless somebody turns it on to look at more, is cold."""

import pytest
from heat.hot_lines import heat

from syncscope.linter.config import Config
from syncscope.linter.engine import check_file

SOURCE = """import torch
from torch import nn

COLLECT_STATS = False
WEIGHED = True

class Loss(nn.Module):
    def __init__(self, collect=COLLECT_STATS, with_stats=False, smooth=False, weighed=WEIGHED, own_stats=True):
        super().__init__()
        self.collect = collect
        self.with_stats = with_stats
        self.kept = COLLECT_STATS
        self.smooth = smooth
        self.weighed = weighed
        self.own_stats = own_stats
        self.late_stats = with_stats

    def turn_on(self):
        self.late_stats = True

    def forward(self, x: torch.Tensor, return_info=False, *, log_stats=False, scaled=False):
        if self.collect:
            self.a = x.min().item()  # cold
        if self.with_stats and x.max() > 1:
            self.b = x.max().item()  # cold
        if self.kept:
            self.c = x.sum().item()  # cold
        if return_info:
            self.d = x.std().item()  # cold
        if log_stats:
            self.e = x.var().item()  # cold
        if COLLECT_STATS:
            self.f = x.norm().item()  # cold
        if self.smooth:
            self.g = x.amin().item()  # hot
        if self.weighed:
            self.h = x.amax().item()  # hot
        if self.own_stats:
            self.i = x.mean().item()  # hot
        if self.late_stats:
            self.j = x.abs().sum().item()  # hot
        if scaled:
            self.k = x.exp().sum().item()  # hot
        if WEIGHED:
            self.l = x.log().sum().item()  # hot
        return x.prod().item()  # hot
"""
LATER = "def turn_on():\n    global COLLECT_STATS\n    COLLECT_STATS = True\n"


def test_flags_that_are_off_by_a_constant_or_as_a_default_are_cold() -> None:
    rows = enumerate(SOURCE.splitlines(), 1)
    assert heat(SOURCE.encode(), "losses.py") == {n: row.rpartition("# ")[2] for n, row in rows if "# " in row}


@pytest.mark.parametrize(("more", "told"), [("", "cold"), (LATER, "hot")])
def test_a_constant_that_the_file_sets_again_is_none(more: str, told: str) -> None:
    line = next(n for n, row in enumerate(SOURCE.splitlines(), 1) if "norm" in row)
    assert heat((SOURCE + more).encode(), "losses.py")[line] == told


BASE = """import torch

from . import settings


class Base(torch.nn.Module):
    def __init__(self, collect_stats=None, scaled=None):
        super().__init__()
        self.collect_stats = settings.COLLECT_STATS if collect_stats is None else collect_stats
        self.scaled = scaled if scaled is not None else settings.SCALED
"""
DERIVED = """import torch

from .base import Base


class Loss(Base):
    def __init__(self, width, **others):
        super().__init__(**others)
        self.width = width

    def forward(self, x: torch.Tensor):
        if self.collect_stats:
            self.a = x.min().item()
        if self.scaled:
            self.b = x.max().item()
        return x
"""


def test_a_flag_that_a_base_of_another_file_sets_to_a_constant_of_a_third(tmp_path) -> None:
    for name, text in (
        ("__init__", ""),
        ("base", BASE),
        ("loss", DERIVED),
        ("settings", "import logging\n\nCOLLECT_STATS = False\nSCALED = True\n"),
    ):
        (tmp_path / "losses").mkdir(exist_ok=True)
        (tmp_path / "losses" / f"{name}.py").write_text(text)
    found = check_file(str(tmp_path / "losses" / "loss.py"), Config(all=True)).findings
    assert [(f.place.line, f.hot) for f in found] == [(13, False), (15, True)]
