"""What waits in functions that a step calls, or around their calls, stays beside a fix: a step gains little by that alone."""

import json

import pytest

CALLS = """
import torch

from lib.solve import halved


def train(model, loader, optimizer):
    for x in loader:
        y = model(x.cuda(non_blocking=True))
        {changed}
        y = {called}(model.head(y))
        y.sum().backward()
        optimizer.step()


def clipped(y: torch.Tensor):
    while (y > 1).any():
        y = y / 2
    return y


def kept(y: torch.Tensor):
    if y.shape[0] > 3:
        y = torch.stack([y, y])[(y > 1).nonzero()]
    return y
"""
SOLVE = """
import torch


def halved(y: torch.Tensor):
    for _ in range(9):
        y = y / 2
        if (y < 1).all():
            break
    return y
"""
WORTH_A_LOOK, SAFE = "y[y < 0.5] = y.mean()", "y = y * torch.zeros(3).to(y.device)"


@pytest.mark.parametrize(
    ("changed", "called", "fixed"),
    [
        (WORTH_A_LOOK, "model.shrink", True),
        (WORTH_A_LOOK, "kept", True),
        (WORTH_A_LOOK, "clipped", False),
        (WORTH_A_LOOK, "halved", False),
        (SAFE, "model.shrink", True),
        (SAFE, "clipped", False),
    ],
)
def test_what_a_called_function_waits_for_stays_beside_a_fix(door, changed, called, fixed):
    door.write("lib/__init__.py", "")
    door.write("lib/solve.py", SOLVE)
    door.write("lib/train.py", CALLS.format(changed=changed, called=called))
    found = json.loads(door("lint", "--format", "json", "lib/train.py").out)
    assert [f["line"] for f in found if f["fix"] is not None and f["line"] == 10] == [10] * fixed


HANDED = """
import torch

from lib.apply import multi_apply


class Loss(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        total = torch.tensor(0.0, device=x.device)
        return total + sum({apply}({handed}, x))

    def one(self, x: torch.Tensor):
        while (x > 1).any():
            x = x / 2
        return x.sum()
"""


@pytest.mark.parametrize(
    ("apply", "handed", "fixed"),
    [("map", "self.one", False), ("multi_apply", "self.one", False), ("map", "torch.sum", True)],
)
def test_what_is_handed_to_what_calls_it_for_each_waits_there(door, apply, handed, fixed):
    door.write("lib/__init__.py", "")
    door.write("lib/apply.py", "def multi_apply(function, *args):\n    return list(map(function, *args))\n")
    door.write("lib/loss.py", HANDED.format(apply=apply, handed=handed))
    found = json.loads(door("lint", "--format", "json", "lib/loss.py").out)
    assert any(f["fix"] is not None for f in found if f["line"] == 9) is fixed


CALLED = """
import torch


def train(model, loader, optimizer):
    for x in loader:
        y = {name}(model(x.cuda(non_blocking=True)))
        {around}
        y.sum().backward()
        optimizer.step()


def {name}(y: torch.Tensor):
    y = y * 2
    {changed}
    return y
"""


@pytest.mark.parametrize(
    ("name", "around", "changed", "fixed"),
    [
        ("_evened", "model.head(y)", WORTH_A_LOOK, True),
        ("_evened", "y = model.head(y)[(y > 1).nonzero()]", WORTH_A_LOOK, False),
        ("_evened", "y = model.head(y)[(y > 1).nonzero()]", SAFE, False),
        ("_evened", "model.head(y)", SAFE, True),
        ("evened", "y = model.head(y)[(y > 1).nonzero()]", WORTH_A_LOOK, False),
        ("_evened", "if model.slow: y = model.head(y)[(y > 1).nonzero()]; y = _evened(y)", WORTH_A_LOOK, False),
        ("_evened", "model.keep = _evened", WORTH_A_LOOK, True),
    ],
)
def test_what_stays_around_each_call_of_a_function_stays_beside_its_fixes(door, name, around, changed, fixed):
    door.write("train.py", CALLED.format(name=name, around=around, changed=changed))
    found = json.loads(door("lint", "--format", "json", "train.py").out)
    assert [f["line"] for f in found if f["fix"] is not None and f["line"] > 12] == [15] * fixed


METER = """
import torch


class Meter:
    def update(self, loss: torch.Tensor):
        {shown}


class Trainer:
    def __init__(self, model):
        self.model = model
        self.meter = Meter()

    def look(self, loss):
        self.meter.update(loss)

    def train(self, loader, optimizer):
        for x in loader:
            y = self.model(x)
            scale = torch.randn(3).to(y.device)
            loss = (y * scale).sum()
            loss.backward()
            optimizer.step()
            {called}(loss)
"""


@pytest.mark.parametrize(
    ("shown", "called", "fixed"),
    [
        ("self.total = loss.cpu().numpy()", "self.meter.update", False),
        ("self.total = loss.cpu().numpy()", "self.look", False),
        ("self.total = loss.detach()", "self.look", True),
    ],
)
def test_what_a_metric_is_given_in_each_pass_waits_there(door, shown, called, fixed):
    door.write("train.py", METER.format(shown=shown, called=called))
    found = json.loads(door("lint", "--format", "json", "train.py").out)
    assert any(f["fix"] is not None for f in found if f["rule"] == "created-on-host") is fixed


CHECKED = """
from typing import final

import torch


class Net:
    @final
    def check(self, loss):
        if self.strict and loss.dim() > 0:
            {leave}
        while loss > 1e20:
            loss = loss / 2

    def training_step(self, batch):
        loss = self.model(batch).sum()
        scale = torch.randn(3).to(loss.device)
        self.check(loss)
        return (loss * scale).sum()
"""


@pytest.mark.parametrize(("leave", "fixed"), [("raise ValueError", False), ("return", True)])
def test_what_stands_behind_an_error_is_come_by_all_the_same(door, leave, fixed):
    door.write("train.py", CHECKED.format(leave=leave))
    found = json.loads(door("lint", "--format", "json", "train.py").out)
    assert any(f["fix"] is not None for f in found if f["rule"] == "created-on-host") is fixed


MODULES = """
import torch


class Inner(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        return x + torch.zeros(3).to(x.device)


class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor):
        x = self.inner(x)
        {more}
        return x

    def {other}(self, x: torch.Tensor):
        return self.inner(x)
"""


@pytest.mark.parametrize(
    ("more", "other", "fixed"),
    [
        ("while (x > 1).any(): x = x / 2", "encoded", False),
        ("while (x > 1).any(): x = x / 2", "compute_loss", True),
        ("x = x / 2", "encoded", True),
    ],
)
def test_what_stays_around_each_call_of_a_module_in_a_step_stays_beside_its_fixes(door, more, other, fixed):
    door.write("net.py", MODULES.format(more=more, other=other))
    found = json.loads(door("lint", "--format", "json", "net.py").out)
    assert any(f["fix"] is not None for f in found if f["line"] == 7) is fixed
