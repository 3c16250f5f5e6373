"""A list that a module keeps and makes a tensor of in every call is made a buffer, where it serves for nothing else."""

import textwrap

import pytest
from rules.driver import findings, fixed

from syncscope.model.finding import Safety

torch = pytest.importorskip("torch")

HEAD = """
import numpy as np
import torch
from torch import nn

class Shift(nn.Module):
    def __init__(self, mean: list, size=None):
        super().__init__()
        self.mean = {}
"""
FORWARD = """
def forward(self, x: torch.Tensor):
    return x - torch.tensor(self.mean, {}device=x.device)
"""
NOT = {
    "it is read on the host": "def names(self):\n    return [str(m) for m in self.mean]",
    "it is set again": "def load(self, mean):\n    self.mean = mean",
    "the class has one": "mean = ()",
    "it is written": "def put(self, x):\n    self.mean[0] = x",
}


def whole(value: str, *methods: str, dtype: str = "") -> str:
    every = (FORWARD.format(dtype), *methods)
    return HEAD.format(value) + "".join(textwrap.indent(method, "    ") + "\n" for method in every)


def offered(code: str) -> set[str]:
    return {f.fix.rewrite for f in findings(code) if f.fix is not None and f.fix.safety is Safety.UNSAFE}


@pytest.mark.parametrize("value", ["mean", "[0.5, 1.5]", "np.array(mean)", "[2 * m for m in mean]"])
@pytest.mark.parametrize("dtype", ["", "dtype=torch.float64, ", "dtype=x.dtype, "])
def test_it_is_made_once_and_gives_the_same(value: str, dtype: str) -> None:
    code = whole(value, dtype=dtype)
    assert offered(code) == {"register_constant"}
    results = []
    for each in (code, fixed(code, allowed=(Safety.SAFE, Safety.UNSAFE))):
        space: dict[str, object] = {}
        exec(each, space)
        results.append(space["Shift"]([0.25, 0.5])(torch.ones(3, 2)))
    assert results[0].dtype is results[1].dtype
    assert torch.equal(*results)


@pytest.mark.parametrize("why", NOT)
def test_it_stays_a_list_where(why: str) -> None:
    assert "register_constant" not in offered(whole("mean", NOT[why]))


@pytest.mark.parametrize("value", ["size", "None", "mean if size else None", "3"])
def test_what_may_be_none_or_is_a_number_stays_as_it_is(value: str) -> None:
    assert "register_constant" not in offered(whole(value))
