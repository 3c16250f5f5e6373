"""Versions told apart by the time that processors work, where others disturb the clock."""

from pathlib import Path

import pytest
from verify.test_in_turns import verified

from syncscope.verify.worked import is_disturbed

pytest.importorskip("torch")
TRAIN = """
import random
import time
import torch

model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
draw = random.Random()


def work(rounds):
    for _ in range(rounds):
        sum(range(1000))


def train():
    for step in range(3000):
        loss = model(torch.ones(5, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        work(200)
        time.sleep(draw.random() * 0.03)  # others


train()
"""


@pytest.mark.xdist_group("runs of a program")
@pytest.mark.usefixtures("imported_once")
def test_less_work_is_told_where_the_clock_is_disturbed(project: Path) -> None:
    (project / "after.py").write_text(TRAIN.replace("work(200)", "work(60)"))
    code, found = verified("--budget=60s", "train.py", "after.py")
    assert found["way"] == "one process"
    if found["ratio_of"] == "time":  # where the clock told of it, before the processors were asked
        assert found["high"] < 1
    else:
        assert found["ratio_of"] == "processor time"
        assert found["ratio"] < 0.8
    assert (code, found["decided"]) == (0, True)


def test_whether_the_clock_is_disturbed_is_told_by_equal_versions() -> None:
    quiet, noisy = [1.0, 1.01, 0.99] * 4, [1.0, 1.2, 0.85] * 4
    assert is_disturbed(noisy, quiet)
    assert not is_disturbed(noisy[:4], quiet[:4])  # too few to say
    assert not is_disturbed(quiet, quiet)
    assert not is_disturbed(noisy, noisy)  # the processors tell no more
    assert not is_disturbed(noisy, [])  # they do not do the work
