"""Numbers that a comprehension reads one by one are read at once, and the loop is said to wait."""

import pytest

CODE = """\
    import math

    import torch
    from torch import nn


    def train(model: nn.Module, loader, optimizer, update):
        for x in loader:
            loss = model(x.cuda()).mean()
            loss.backward()
            loader.log = {norm}
            optimizer.step()
"""
STACKED = "torch.stack([p.grad.norm() for p in model.parameters()]).tolist()"


@pytest.mark.parametrize(
    ("norm", "fixed"),
    [
        (
            "sum(p.grad.norm().item() ** 2 for p in model.parameters()) ** 0.5",
            f"sum(value ** 2 for value in {STACKED}) ** 0.5",
        ),
        ("max(p.grad.norm().item() for p in model.parameters())", f"max({STACKED})"),
        ("tuple([p.grad.norm().item() for p in model.parameters()])", f"tuple({STACKED})"),
        ("[math.sqrt(p.grad.norm().item()) for p in model.parameters()]", f"[math.sqrt(value) for value in {STACKED}]"),
    ],
)
def test_all_are_computed_and_then_read_at_once(door, norm, fixed):
    path = door.write("train.py", CODE.format(norm=norm))
    assert "`p.grad.norm().item()` waits for the device on every pass of the loop" in door("lint", "train.py").out
    door("lint", "--fix", "--unsafe-fixes", "--select", "host-read", "train.py")
    assert "".join(f"log = {fixed}".split()) in "".join(path.read_text().split())  # which may go over lines


@pytest.mark.parametrize(
    "norm",
    [
        "[(n, p.grad.norm().item()) for n, p in model.named_parameters()]",  # what is made of a number needs the name, too
        "[update(p.grad.norm().item()) for p in model.parameters()]",  # which may change what comes next
        "next(p.grad.norm().item() for p in model.parameters())",  # it stops where it likes
        "any(p.grad.norm().item() > 3 for p in model.parameters())",
        "[loss.item() for p in model.parameters()]",  # one tensor
    ],
)
def test_what_may_be_otherwise_then_stays(door, norm):
    path = door.write("train.py", CODE.format(norm=norm))
    door("lint", "--fix", "--unsafe-fixes", "--select", "host-read", "train.py")
    assert f"log = {norm}\n" in path.read_text()
