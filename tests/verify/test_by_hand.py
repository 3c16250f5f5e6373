"""Programs that change their parameters without an optimizer: each backward pass ends a step of theirs."""

from pathlib import Path

import pytest
from verify.test_in_turns import HALF, TRAIN, verified

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.xdist_group("runs of a program"),
    pytest.mark.usefixtures("project", "library", "imported_once"),
]
OPTIMIZED = """optimizer = torch.optim.SGD(model.parameters(), 0.01)
"""
STEPS = """        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
BY_HAND = """        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-0.01)
"""
UNOPTIMIZED = TRAIN.replace(OPTIMIZED, "optimizer = None\n").replace(STEPS, BY_HAND)


def test_a_gain_is_found_in_one_process_and_values_are_compared(project: Path) -> None:
    assert "torch.optim" not in UNOPTIMIZED
    (project / "train.py").write_text(UNOPTIMIZED)
    code, found = verified()
    assert (code, found["way"], found["values"]) == (0, "one process", "equal")
    assert HALF < found["ratio"] < 1 - HALF


def test_a_version_that_changes_them_in_another_way_is_refused(project: Path) -> None:
    (project / "train.py").write_text(UNOPTIMIZED)
    (project / "after.py").write_text(UNOPTIMIZED.replace("alpha=-0.01", "alpha=-0.0101"))
    code, found = verified("--precision=30%", "train.py", "after.py")  # of values, not of times
    assert (code, found["values"]) == (1, "changed")
