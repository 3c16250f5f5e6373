"""`syncscope verify --before COMMIT`, and two scripts beside libraries that differ: the change is in what is imported."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from syncscope.cli.verify import command
from syncscope.errors import UserError

pytest.importorskip("torch")
pytestmark = [
    pytest.mark.xdist_group("runs of a program"),
    pytest.mark.usefixtures("project", "library", "imported_once"),
]

TRAIN = """
import torch
import slow_device
from lib.core import step

torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for _ in range(400):
    loss = step(model, torch.ones(5, 4))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
CORE = """
import time


def step(model, x):
    loss = model(x).square().mean()
    loss.item()
    time.sleep(0.004)
    return loss
"""
OPTIONS = ("--device=cpu", "--budget=60m", "--steps=12", "--format=json", "--quiet", "--precision=30%")


def put(folder: Path, core: str) -> None:
    (folder / "lib").mkdir(parents=True, exist_ok=True)
    (folder / "lib" / "__init__.py").touch()
    (folder / "lib" / "core.py").write_text(core)
    (folder / "train.py").write_text(TRAIN)


def commit(folder: Path) -> None:
    if not shutil.which("git"):
        pytest.skip("there is no git here")
    own = ["git", "-c", "user.email=me@example.org", "-c", "user.name=me"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "before"]):
        subprocess.run([*own, *arguments], cwd=folder, check=True)


def asked(*arguments: str) -> Any:
    return CliRunner().invoke(command, [*OPTIONS, *arguments], standalone_mode=False)


def verified(*arguments: str) -> tuple[int, dict[str, Any]]:
    done = asked(*arguments)
    assert done.exception is None, done.output
    return done.return_value, json.loads(done.stdout)


def test_a_change_of_a_library_is_told_beside_the_commit_before_it(project: Path) -> None:
    put(project, CORE)
    commit(project)
    put(project, CORE.replace("    loss.item()\n", ""))
    code, found = verified("--before", "HEAD", "train.py")
    assert (code, found["values"], found["way"]) == (0, "equal", "one process")
    assert (found["reads_before"], found["reads_after"]) == (1, 0)
    assert 0.45 < found["low"] <= found["ratio"] <= found["high"] < 0.55
    assert found["program"] == "train.py as in HEAD and as it is"
    assert "loss.item()" not in (project / "lib" / "core.py").read_text(), "the files are as they were"


def test_a_library_that_computes_something_else_is_another_program(project: Path) -> None:
    put(project, CORE)
    commit(project)
    put(project, CORE.replace("square()", "abs()"))
    code, found = verified("--before", "HEAD", "train.py")
    assert (code, found["values"]) == (1, "changed")


def test_what_cannot_be_compared_with_a_commit_is_said(project: Path) -> None:
    put(project, CORE)
    (project / "other.py").write_text("")
    commit(project)
    for arguments, said in (
        (("--before", "HEAD", "train.py"), "no Python file here differs from HEAD"),
        (("--before", "nobody", "train.py"), "git knows no commit nobody"),
        (("--before", "HEAD", "--stale", "train.py"), "--before compares with a commit"),
    ):
        error = asked(*arguments).exception
        assert isinstance(error, UserError)
        assert error.message.startswith(said)
    (project / "other.py").write_text("changed = True\n")
    error = asked("--before", "HEAD", "train.py").exception
    assert isinstance(error, UserError)
    assert "none of the 1 files that differ from HEAD ran" in error.message


def test_two_scripts_with_libraries_of_their_own_are_not_woven_into_one(project: Path) -> None:
    """In one process both imported the library of the first: a gain was not seen, nor a loss."""
    put(project / "one", CORE)
    put(project / "two", CORE.replace("    loss.item()\n", ""))
    code, found = verified("one/train.py", "two/train.py")
    assert (code, found["values"], found["way"]) == (0, "equal", "processes")
    assert "they import files that differ, as one/lib/core.py" in found["why_processes"]
    assert 0.45 < found["ratio"] < 0.55
