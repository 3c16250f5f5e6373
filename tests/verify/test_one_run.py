"""One run of a program: what is noted of it, however it is started and however it ends."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from verify.conftest import import_once

from syncscope.verify.processes import Processes, RunFailedError
from syncscope.verify.request import Program, Request

pytest.importorskip("torch")
pytestmark = pytest.mark.xdist_group("runs of a program")  # in one worker, one after the other
TRAIN = """
import os, torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
os.chdir("elsewhere")
for _ in range(3):
    model(torch.ones(2)).sum().backward()
    optimizer.step()
"""


BREAKS = TRAIN.replace("range(3)", "range(9)") + "raise RuntimeError('boom')\n"
LEAVES = TRAIN + "print('all done', flush=True)\nos._exit(0)\n"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Processes]:
    """Runs in a folder of programs, which is the working folder."""
    project = tmp_path_factory.mktemp("project")
    for name in ("elsewhere", "pkg"):
        (project / name).mkdir()
    for name, text in (("train", TRAIN), ("leaves", LEAVES), ("breaks", BREAKS)):
        (project / "pkg" / f"{name}.py").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        import_once(patch, request)
        with Processes(time.monotonic() + 500) as runs:
            yield runs


@pytest.mark.parametrize("program", [Program("pkg/train.py"), Program("pkg.train", module=True)])
def test_the_program_itself_is_among_its_files_though_it_ends_by_itself(runs: Processes, program: Program) -> None:
    found = runs.run(Request("time", program, "")).found
    assert found["steps"] == 3
    assert str(Path("pkg/train.py").absolute()) in found["files"]


def test_a_program_that_trains_on_the_cpu_does_so_though_ocl_stands_in_for_cuda(runs: Processes) -> None:
    pytest.importorskip("pyopencl")
    assert runs.run(Request("time", Program("pkg/train.py", device="ocl"), "")).found["device"] == "cpu"


def test_a_program_that_leaves_at_once_has_not_failed_with_what_it_printed_last(runs: Processes) -> None:
    with pytest.raises(RunFailedError) as failed:
        runs.run(Request("time", Program("pkg/leaves.py"), ""))
    assert failed.value.why == "it ended with exit code 0 and no step was counted"


def test_a_program_that_breaks_off_has_made_some_steps(runs: Processes) -> None:
    with pytest.raises(RunFailedError) as failed:
        runs.run(Request("time", Program("pkg/breaks.py"), ""))
    assert (failed.value.why, failed.value.steps) == ("RuntimeError: boom", 9)


def test_a_message_of_several_lines_is_told_by_its_first() -> None:
    frame = '  File "train.py", line 3, in <module>\n    load()\n    ~~~~^^\n'
    said = f"so far\n{frame}ValueError: no weights.\n\tDo this.\n\nSee the page.\n"
    assert RunFailedError(1, said).why == "ValueError: no weights."
    assert RunFailedError(3, "no data\n").why == "it ended with exit code 3: no data"
