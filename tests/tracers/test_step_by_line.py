"""A step of a real program on the `ocl` device, by line: all of it has its line, a library's below the user's."""

import importlib
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pyopencl")
pytestmark = pytest.mark.usefixtures("unlinted")

import syncscope.kernels  # noqa: E402
from syncscope.tracers.lines import library as lines  # noqa: E402

if lines.library() is None:
    pytest.skip("no compiler, or an interpreter whose frames nobody knows", allow_module_level=True)

LIBRARY = """
def normalised(x):
    low = x.min().item()                        # 3
    return (x - low) * 2                        # 4
"""
PROGRAM = """
import torch
import a_library_of_theirs as theirs

def step(x, w, average):
    y = theirs.normalised(x @ w)                # 6
    loss = y.square().mean()                    # 7
    loss.backward()                             # 8
    with torch.no_grad():
        for a in average:
            a.mul_(0.9).add_(w, alpha=0.1)      # 11
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    packages = tmp_path / "lib" / "python3.12" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "a_library_of_theirs.py").write_text(LIBRARY)
    (tmp_path / "a_program_of_mine.py").write_text(textwrap.dedent(PROGRAM))
    for folder in (packages, tmp_path):
        monkeypatch.syspath_prepend(str(folder))
    yield importlib.import_module("a_program_of_mine")
    for name in ("a_program_of_mine", "a_library_of_theirs"):
        sys.modules.pop(name, None)


def test_every_part_of_a_step_has_its_line(program):
    x, w = torch.randn(64, 64).to("ocl"), torch.randn(64, 64).to("ocl").requires_grad_()
    average = [torch.zeros(64, 64).to("ocl") for _ in range(12)]
    with syncscope.trace(wait=2, warmup=1, active=9) as trace:
        for _ in range(12):
            program.step(x, w, average)
            trace.step()
    report = trace.report(show=False)
    found = report.by_line
    of = {(one.place.path.rpartition("/")[2], one.place.line): one for one in found.lines if one.place}
    mine, theirs = "a_program_of_mine.py", "a_library_of_theirs.py"
    assert {(theirs, 3), (theirs, 4), (mine, 6), (mine, 7), (mine, 8), (mine, 11)} <= set(of)
    assert of[theirs, 3].waits == 1
    assert of[theirs, 3].library
    assert of[theirs, 3].caller.line == 6
    assert of[mine, 11].launches == 24, "a multiplication and an addition for each"
    assert of[mine, 7].backward > 0, "what the backward pass launches for a line"
    own = {name for name, _ in of[mine, 8].kernels}
    assert own <= {"add_float", "fill"}, "the loss' own gradient, and sums of leaves"
    assert found.host_known > 0.95
    assert found.device_known > 0.98
    (line,) = report.lines
    assert (line.place.line, line.caller.line) == (3, 6)
    assert sum(one.of_step for one in found.lines) == pytest.approx(found.step, rel=1e-6)
