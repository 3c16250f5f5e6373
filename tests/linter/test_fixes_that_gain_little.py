"""Fixes of which a step gains little: beside a wait that stays, of what nothing reads, or longer than they help."""

import json

import pytest

PASSES = """
import torch


def train(model, loader, optimizer):
    for x in loader:
        y = model(x)
        scale = torch.zeros(3).to(y.device)
        y.sum().backward()
        {more}
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("more", "fixed"),
    [
        ("torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)", True),
        ("while (y > 1).any(): y = y / 2", False),
        ("if model.slow: model.shrink((y > 1).nonzero())", False),
        ("if x.shape[0] % 7 == 0: raise ValueError((y > 1).nonzero())", True),
        ("model.shrink((y > 1).nonzero())", False),
    ],
)
def test_a_fix_beside_a_wait_that_stays_is_left_to_people(door, more, fixed):
    door.write("train.py", PASSES.format(more=f"{more}; model.use(scale)"))
    found = json.loads(door("lint", "--format", "json", "train.py").out)
    (zeros,) = (f for f in found if f["line"] == 8)
    assert zeros["hot"]
    assert (zeros["fix"] is not None) is fixed


@pytest.mark.parametrize(("given", "fixed"), [("", True), (", look=True", False)])
def test_what_nobody_asks_for_stays_beside_no_fix(door, given, fixed):
    code = PASSES.replace("optimizer):", "optimizer, look=False):")
    door.write("lib/__init__.py", "")
    door.write("lib/train.py", code.format(more="model.use(scale, (y > 1).nonzero() if look else None)"))
    door.write(
        "lib/run.py",
        f"from lib.train import train\n\n\ndef run(model, loader, step):\n    train(model, loader, step{given})\n",
    )
    found = json.loads(door("lint", "--format", "json", "lib/train.py").out)
    (zeros,) = (f for f in found if f["line"] == 8)
    assert (zeros["fix"] is not None) is fixed


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


ENTRIES = """
import torch


def training_step(model, x: torch.Tensor, batch):
    kept, out = x > 0, x
    for key, value in {over}:
        out = out + model(value.exp()[kept])
    out.sum().backward()
"""


@pytest.mark.parametrize(("over", "fixed"), [("batch.items()", False), ("enumerate(batch)", True)])
def test_of_few_entries_that_one_mask_selects_of_the_first_waits_all_the_same(door, over, fixed):
    door.write("step.py", ENTRIES.format(over=over))
    found = json.loads(door("lint", "--format", "json", "step.py").out)
    assert any(f["fix"] is not None for f in found if f["line"] == 8) is fixed


EXPERTS = """
import torch


def step(model, x: torch.Tensor, which: torch.Tensor):
    out = torch.zeros_like(x)
    for i, expert in enumerate(model.experts):
        mask = which == i
        {look}
        y = expert(x[mask])
        out[mask] = out[mask] + y
    out.sum().backward()
"""


@pytest.mark.parametrize(("look", "fixed"), [("if not mask.any(): continue", False), ("y = x + 1", True)])
def test_of_the_waits_that_one_look_mends_one_is_left(door, look, fixed):
    door.write("step.py", EXPERTS.format(look=look))
    found = json.loads(door("lint", "--format", "json", "step.py").out)
    assert any(f["fix"] is not None for f in found if f["rule"].startswith("boolean-mask")) is fixed


@pytest.mark.parametrize(
    ("head", "fixed"),
    [
        ("# This file was automatically generated from modular_net.py.\n# Do NOT edit this file manually.", False),
        ('"""AUTO-GENERATED FILE"""', False),
        ("# AUTOGENERATED! DO NOT EDIT! File to edit: ../nbs/00_net.ipynb", True),
        ("# What is generated here is a picture", True),
    ],
)
def test_a_file_that_is_generated_is_changed_where_it_is_made(door, head, fixed):
    door.write("net.py", f"{head}\n" + PASSES.format(more="model.use(scale)"))
    (zeros,) = (
        f for f in json.loads(door("lint", "--format", "json", "net.py").out) if f["line"] == 9 + head.count("\n")
    )
    assert zeros["hot"]
    assert (zeros["fix"] is not None) is fixed


def test_what_nothing_reads_is_better_taken_out(door):
    code = PASSES.format(more="model.log()")
    door.write("train.py", code)
    (found,) = json.loads(door("lint", "--format", "json", "train.py").out)
    assert found["hot"]
    assert found["fix"] is None
    door.write("train.py", code.replace("scale =", "scale = 1.0\n        scale +="))
    assert all(each["fix"] is None for each in json.loads(door("lint", "--format", "json", "train.py").out))
    door.write("train.py", code.replace("model.log()", "model.log(scale)"))
    (found,) = json.loads(door("lint", "--format", "json", "train.py").out)
    assert found["fix"] is not None


WRITES = """
import torch


def training_step(x: torch.Tensor, rows: torch.Tensor, n: int):
    kept, wide = torch.zeros(n, device=x.device), torch.zeros(n, n, device=x.device)
    {write}
    return (kept * wide * x).sum()
"""


@pytest.mark.parametrize(
    ("write", "fixed"),
    [
        ("kept[0] = 1.0", True),
        ("for i in range(n): kept[i] = 1.0", False),
        ("wide[rows, rows] = 1.0", False),
    ],
)
def test_numbers_that_are_written_one_by_one_or_read_worse_are_left_to_people(door, write, fixed):
    door.write("step.py", WRITES.format(write=write))
    (found,) = json.loads(door("lint", "--format", "json", "step.py").out)
    assert found["hot"]
    assert (found["fix"] is not None) is fixed


def test_code_that_becomes_much_longer_is_left_to_people(door):
    reads = "".join(f"\n        x[:, {n}].max().item(), x[:, {n}].min().item()," for n in range(6))
    code = (
        f"import torch\n\n\ndef training_step(model, x: torch.Tensor):\n    model.note({reads})\n    return x.sum()\n"
    )
    door.write("step.py", code)
    for asked, fixed in (((), False), (("--all",), True)):
        found = json.loads(door("lint", "--format", "json", *asked, "step.py").out)
        assert all(each["hot"] for each in found)
        assert any(each["fix"] is not None for each in found) is fixed


UNSAFE_BESIDE = """
import torch


def train(net, loader, opt):
    for x in loader:
        out = net(x.cuda(non_blocking=True))
        target = torch.zeros(8, 8, device="cuda")
        rows = torch.nonzero(target == 9, as_tuple=True)
        target[rows] = -1
        kept = {kept}
        loss = (kept * target).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (
            "torch.where(out > 0, out, torch.tensor(0.0).to(out.device))",
            "without the unsafe ones a step gains little by it: line 11 waits in the same step, and stays",
        ),
        ("out * 2", ""),
    ],
)
def test_a_safe_fix_that_gains_nothing_without_an_unsafe_one_says_so(door, kept, said):
    """`--fix` alone made it, and the step was as long as before."""
    door.write("train.py", UNSAFE_BESIDE.format(kept=kept))
    found = json.loads(door("lint", "--format", "json", "train.py").out)
    (safe,) = (f["fix"] for f in found if f["fix"] and f["fix"]["safety"] == "safe")
    assert safe["gains"] == "; ".join(filter(None, ("saves a wait on each pass of the loop", said)))
