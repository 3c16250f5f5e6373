"""What of a loss runs in a step is what its `forward` reaches: other public methods and properties are for whoever asks."""

from pathlib import Path

import pytest

from syncscope.tensors.interpret import Project, sites

LOSSES = """
import torch


class Margin(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return self.scaled(x) * self.temperature

    def scaled(self, x: torch.Tensor):
        return x / x.sum().item()  # whole

    @property
    def temperature(self):
        return self.weight.exp().item()  # whole

    @property
    def sharpness(self):
        return self.weight.cuda().max().item()  # cold

    def outliers(self, x: torch.Tensor):
        return x[x > x.mean().item()]  # cold

    def calibrated(self):
        return self._spread() / 2

    def _spread(self):
        return self.weight.cuda().std().item()  # cold


class MarginLoss(Margin):
    def forward(self, x):
        return self.scaled(x)

    def outliers(self, x: torch.Tensor):
        return x / x.mean().item()  # cold

    @property
    def used_beside(self):
        return self.weight.cuda().min().item()  # whole

    @property
    def unused(self):
        return self.weight.cuda().min().item()  # cold


class Derived(MarginLoss):
    pass


class DerivedLoss(Derived):
    def told(self, x: torch.Tensor):
        return x.sum().item()  # cold


class OtherLoss:
    def of_pairs(self, x: torch.Tensor):
        return x.sum().item()  # whole
"""
BESIDE = """
import torch


class Net(torch.nn.Module):
    def forward(self, x, loss):
        return loss(x) / loss.used_beside
"""


@pytest.mark.parametrize("offers", [False, True])
def test_each_line_is_told_as_it_is_marked(tmp_path: Path, offers: bool) -> None:
    package = tmp_path / "project" / "net"
    package.mkdir(parents=True)
    names = "Margin, MarginLoss, DerivedLoss, OtherLoss"
    (package / "__init__.py").write_text(f"from .losses import {names}\n" if offers else "")
    (package / "losses.py").write_text(LOSSES)
    (package / "step.py").write_text(BESIDE)
    (package / "use.py").write_text(f"from .losses import {names}\n")
    lines = enumerate(LOSSES.splitlines(), 1)
    marked = {n: line.rpartition("# ")[2] for n, line in lines if line.endswith(("# whole", "# cold"))}
    found = sites(LOSSES.encode(), str(package / "losses.py"), Project())
    told = {site.place.line: "whole" if site.whole else "short" if site.hot else "cold" for site in found}
    if offers:  # to whoever computes with them: told in a line
        told = {line: "cold" if said == "short" else said for line, said in told.items()}
    assert told == marked


IN_A_TABLE = """
import torch

def first(x: torch.Tensor):
    return x / x.sum().item()  # hot

def third(x: torch.Tensor):
    return x / x.sum().item()  # cold

def second(x: torch.Tensor):
    return x / x.sum().item()  # hot

LOSSES = {"first": first, "second": second}
"""


def test_what_a_table_behind_the_last_function_of_a_file_holds_may_be_looked_up(package: Path) -> None:
    (package / "parts.py").write_text(IN_A_TABLE)
    lines = enumerate(IN_A_TABLE.splitlines(), 1)
    marks = {number: line.rpartition("# ")[2] for number, line in lines if "# " in line}
    found = sites(IN_A_TABLE.encode(), str(package / "parts.py"), Project())
    assert {site.place.line: "hot" if site.hot else "cold" for site in found if site.op == "item"} == marks
