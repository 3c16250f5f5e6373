"""A program whose runs have nothing in common at their end is compared over the steps in which they have."""

import sys
import time
from pathlib import Path
from unittest.mock import ANY

import pytest

from syncscope.verify.compared import Compared
from syncscope.verify.processes import Processes
from syncscope.verify.request import Program
from syncscope.verify.results import CHANGED, Verification
from syncscope.verify.runs import Runs, Settings
from syncscope.verify.two import OTHER

pytest.importorskip("torch")
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each run would import torch anew"),
    pytest.mark.xdist_group("runs of a program"),
    pytest.mark.usefixtures("imported_once"),
]
CHAOS = """
import os
import torch

x = torch.tensor(0.3, dtype=torch.float64) + int.from_bytes(os.urandom(4), "little") * 1e-20
w = torch.nn.Parameter(torch.ones(()))
optimizer = torch.optim.SGD([w], 0.1)
for step in range(120):
    x = 3.9 * x * (1 - x)
    loss = (w * x).square()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


@pytest.mark.slow  # as where one last bit carries far, with noise that does
def test_a_change_is_told_where_runs_still_have_something_in_common(tmp_path: Path) -> None:
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    one.write_text(CHAOS)
    found = Verification("one.py")
    with Processes(time.monotonic() + 600, lambda line: None) as processes:
        runs = Runs(Program(str(one), device="cpu"), Settings(600, steps=110), processes, lambda what: None, found)
        compared = Compared(runs)
        compared.as_written()
        assert found.steps == 110
        assert 2 <= found.fewer_steps < 80
        assert found.noise is not None
        assert found.noise.largest < 0.1
        assert any(f"over the first {found.fewer_steps} of 110 steps" in note for note in found.notes)
        assert not any("nothing in common in the end" in note for note in found.notes)
        for change, is_same in (("w * x * 1.01", False), ("x * w", True)):
            other.write_text(CHAOS.replace("w * x)", f"{change})"))
            runs.other = Program(str(other), device="cpu")
            compared.note(OTHER, compared.must_run(OTHER, runs.other))
            values, why, _ = compared.judge(OTHER, rounds=True, safe=False)
            assert (values != CHANGED) == is_same, why


def test_what_has_nothing_in_common_from_the_first_step_is_said_to_prove_nothing(tmp_path: Path) -> None:
    one = tmp_path / "one.py"
    one.write_text(CHAOS.replace("* 1e-20", "* 1e-10"))
    found = Verification("one.py")
    with Processes(time.monotonic() + 600, lambda line: None) as processes:
        runs = Runs(Program(str(one), device="cpu"), Settings(600, steps=12), processes, lambda what: None, found)
        Compared(runs).as_written()
    assert found.fewer_steps == 0
    assert found.noise is not None
    assert found.noise.largest > 0.1


CARRIED = """
import torch

x = torch.tensor(0.3)
w = torch.nn.Parameter(torch.ones(()))
optimizer = torch.optim.SGD([w], 1e-6)
for step in range(120):
    x = 3.9 * x * (1 - x) * w.detach()
    loss = (w * x).square()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
    if step % 4 == 0:
        print([w.item() for _ in range(6)])
"""


def test_where_one_last_bit_carries_far_fewer_steps_are_compared(tmp_path: Path) -> None:
    """The program is deterministic. After a hundred steps all would pass for rounding, or for nothing in common."""
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    one.write_text(CARRIED)
    found = Verification("one.py")
    with Processes(time.monotonic() + 600, lambda line: None) as processes:
        runs = Runs(Program(str(one), device="cpu"), Settings(600, steps=110), processes, lambda what: None, found)
        compared = Compared(runs)
        compared.as_written()
        for change, is_same in (("1.3 * (3 * x) * (1 - x)", True), ("3.91 * x * (1 - x)", False)):
            other.write_text(CARRIED.replace("3.9 * x * (1 - x)", change))
            runs.other = Program(str(other), device="cpu")
            compared.note(OTHER, compared.must_run(OTHER, runs.other))
            values, why, _ = compared.judge(OTHER, rounds=True, safe=False)
            assert (values != CHANGED) == is_same, why
            assert compared.syncs(OTHER) == (2.5, 2.5, ANY)  # though one has made 110 steps, the other fewer
        assert 2 <= found.fewer_steps < 60
        assert any(f"over the first {found.fewer_steps} of 110 steps" in note for note in found.notes)
