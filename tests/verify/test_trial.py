"""One run of a program: what is noted of it, however it is started and however it ends."""

import time
from pathlib import Path

import pytest

from syncscope.verify.processes import Processes, RunFailedError
from syncscope.verify.request import Program, Request

pytest.importorskip("torch")
TRAIN = """
import os, torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
os.chdir("elsewhere")
for _ in range(3):
    model(torch.ones(2)).sum().backward()
    optimizer.step()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "train.py").write_text(TRAIN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("program", [Program("pkg/train.py"), Program("pkg.train", module=True)])
def test_the_program_itself_is_among_its_files_though_it_ends_by_itself(project: Path, program: Program) -> None:
    with Processes(time.monotonic() + 120) as runs:
        found = runs.run(Request("time", program, "")).found
    assert found["steps"] == 3
    assert str(project / "pkg" / "train.py") in found["files"]


def test_a_program_that_leaves_at_once_has_not_failed_with_what_it_printed_last(project: Path) -> None:
    with (project / "pkg" / "train.py").open("a") as file:
        file.write("print('all done', flush=True)\nos._exit(0)\n")
    with Processes(time.monotonic() + 120) as runs, pytest.raises(RunFailedError) as failed:
        runs.run(Request("time", Program("pkg/train.py"), ""))
    assert failed.value.why == "it ended with exit code 0 before its steps were counted"
