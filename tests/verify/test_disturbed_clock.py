"""Versions told apart by the time that processors work, where others disturb the clock."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from verify.test_in_turns import HALF, OPTIONS

from syncscope.cli.verify import command
from syncscope.verify.worked import is_disturbed

pytest.importorskip("torch")
TRAIN = """
import random
import time
import drawn_clock
import torch

model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
draw = random.Random(0)


def train():
    for step in range(3000):
        loss = model(torch.ones(5, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        drawn_clock.work(0.002)
        time.sleep(draw.random() * 0.03)  # others


train()
"""


@pytest.mark.xdist_group("runs of a program")
@pytest.mark.usefixtures("imported_once", "library")
def test_less_work_is_told_where_the_clock_is_disturbed(project: Path) -> None:
    (project / "after.py").write_text(TRAIN.replace("work(0.002)", "work(0.001)"))
    done = CliRunner().invoke(command, [*OPTIONS[:-1], "train.py", "after.py"], standalone_mode=False)
    found = json.loads(done.stdout)
    assert (done.return_value, found["way"], found["ratio_of"]) == (0, "one process", "processor time")
    assert done.stderr.count("in which no wait is, so what waits cost is not proved") == 1
    assert HALF < found["low"] <= found["ratio"] <= found["high"] < 1 - HALF


@pytest.mark.xdist_group("runs of a program")
@pytest.mark.usefixtures("imported_once", "library")
def test_what_a_version_asks_for_and_does_not_wait_for_is_its_own_work(project: Path) -> None:
    written = TRAIN.replace(
        "drawn_clock.work(0.002)", "drawn_clock.work(0.001); drawn_clock.ask(0.001); drawn_clock.wait()"
    )
    (project / "train.py").write_text(written)
    (project / "after.py").write_text(written.replace("; drawn_clock.wait()", ""))
    done = CliRunner().invoke(command, [*OPTIONS[:-1], "train.py", "after.py"], standalone_mode=False)
    found = json.loads(done.stdout)
    assert found["ratio_of"] == "processor time"
    assert 1 - HALF < found["ratio"] < 1 + HALF
    assert "`syncscope verify train.py` takes" not in done.stderr  # the command had options, which it needs


def test_whether_the_clock_is_disturbed_is_told_by_equal_versions() -> None:
    quiet, noisy = [1.0, 1.01, 0.99] * 4, [1.0, 1.2, 0.85] * 4
    assert is_disturbed(noisy, quiet)
    assert not is_disturbed(noisy[:4], quiet[:4])  # too few to say
    assert not is_disturbed(quiet, quiet)
    assert not is_disturbed(noisy, noisy)  # the processors tell no more
    assert not is_disturbed(noisy, [])  # they do not do the work
