"""`syncscope verify` with versions that take turns in one process, through the command line: what is known beforehand is found,
and what cannot run so is tried as before.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from syncscope.cli.verify import command

pytest.importorskip("torch")
pytestmark = [pytest.mark.xdist_group("runs of a program"), pytest.mark.usefixtures("project")]
DEVICE = """
import time
import torch

item = torch.Tensor.item

def slow(tensor):
    time.sleep(0.01)
    return item(tensor)

torch.Tensor.item = slow
"""
TRAIN = """
import time
import torch
import slow_device

device = torch.device("cuda")
torch.manual_seed(0)
model = torch.nn.Linear(4, 3).to(device)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
loader = [torch.randn(5, 4) for _ in range(400)]


def train(model, loader, optimizer):
    total = 0.0
    for x in loader:
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        time.sleep(0.01)
    return total


print(train(model, loader, optimizer))
open("checkpoint.pt", "w").write("of today")
"""
OPTIONS = ("--device=cpu", "--steps=12", "--format=json", "--quiet")


@pytest.fixture(autouse=True)
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A device that is behind, in a library, so that its lines are not the program's."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "slow_device.py").write_text(DEVICE)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder / "slow_device.py"


def verified(*options: str) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(command, [*OPTIONS, *options, "train.py"], standalone_mode=False)
    assert done.exception is None, done.output
    return done.return_value, json.loads(done.stdout)


def test_a_gain_is_found_in_one_process_and_the_program_is_as_before(project: Path) -> None:
    code, found = verified()
    assert (code, found["way"], found["why_processes"], found["values"]) == (0, "one process", None, "equal")
    assert found["low"] <= found["ratio"] <= found["high"] < 1
    assert found["ratio"] < 0.8  # half of it is the wait
    assert found["runs"] <= 5  # two of the values as written, one rewritten, the turns, which may begin twice
    assert (project / "train.py").read_text() == TRAIN
    assert (project / "checkpoint.pt").read_text() == "of yesterday"


def test_what_gives_nothing_is_no_gain(library: Path) -> None:
    library.write_text(DEVICE.replace("time.sleep(0.01)", "pass"))
    code, found = verified("--budget=30s")
    assert found["way"] == "one process"
    assert code == (1 if found["decided"] else 3)  # a machine that does other things may not tell within its budget
    assert not found["patch"]


def test_what_runs_once_is_tried_in_processes_and_the_result_says_why(project: Path) -> None:
    (project / "train.py").write_text(TRAIN.replace("range(400)", "range(9)"))
    _, found = verified("--steps=8", "--precision=30%")
    assert found["way"] == "processes"
    assert "too few steps" in found["why_processes"]
    assert found["ratio"] < 0.8


def test_each_version_has_a_process_where_that_is_asked_for() -> None:
    _, found = verified("--apart", "--precision=30%")
    assert found["way"] != "one process"
    assert found["ratio"] < 0.8
