"""Where no name says that a function runs in every step, it is said which line calls it."""

from textwrap import dedent

import pytest

from syncscope.tensors.interpret import sites

PLAIN = """
import torch

def amount(x: torch.Tensor):
    return x.item()

def early(x):
    return amount(x)

def train(net, loader, opt):
    for x in loader:
        net(x).sum().backward()
        opt.step()
        print(amount(x))
"""
METHOD = """
import torch

class Other:
    def weigh(self, x):
        return self.amount(x)

class Scale:
    def weigh(self, x):
        return self.amount(x)

class Kitchen(Scale):
    def amount(self, x: torch.Tensor):
        return x.item()

class Shop:
    def amount(self, x):
        return 1
"""
SCRIPT = """
import torch

def amount(x: torch.Tensor):
    return x.item()

net, opt = torch.nn.Linear(1, 1), None
for x in loader:
    net(x).sum().backward()
    opt.step()
    amount(x)
"""
EVALUATED_ALONE = """
import torch

def amount(x: torch.Tensor):
    return x.item()

@torch.no_grad()
def estimate(x):
    return amount(x)

handed = [amount]
"""
EVALUATED = """
import torch

def amount(x: torch.Tensor):
    return x.item()

@torch.no_grad()
def estimate(x):
    return amount(x)

net, opt = torch.nn.Linear(1, 1), None
for step, x in enumerate(loader):
    if step % 100 == 0:
        print(estimate(x))
    net(x).sum().backward()
    opt.step()
    amount(x)
"""
NOBODY = """
import torch

def amount(x: torch.Tensor):
    return x.item()

handed = [amount]
"""
AROUND_A_LOADER = """
import torch

def amount(x: torch.Tensor):
    return x.item()

def early(x):
    return amount(x)

def gathered(loader):
    for x in loader:
        early(x)
"""


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (PLAIN, "each pass of a training loop runs `amount`: line 14 calls it, in train"),
        (METHOD, "`amount` may run in every step: line 10 calls it, in Scale.weigh"),
        (SCRIPT, "each pass of a training loop runs `amount`: line 11 calls it"),
        (EVALUATED, "each pass of a training loop runs `amount`: line 17 calls it"),
        (EVALUATED_ALONE, "`amount` may run in every step"),
        (NOBODY, "`amount` may run in every step"),
        (AROUND_A_LOADER, "`amount` may run in every step: line 8 calls it, in early"),
    ],
    ids=[
        "in a training loop before elsewhere",
        "of a base, and not of a stranger",
        "at the top level",
        "in a training loop, and not where it is evaluated",
        "by no line of what is evaluated",
        "by no line",
        "in a file whose loop over a loader asks who calls that",
    ],
)
def test_the_line_that_calls_is_said(code, words):
    (site,) = (
        one for one in sites(dedent(code).encode(), "x.py") if one.op == "item" and one.heat.about == ("amount",)
    )
    assert site.heat.words == words
