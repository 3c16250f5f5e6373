"""Selections by a mask, whose gradients CUDA waits for and `ocl` does not: they are told where a limit of syncs holds."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from in_c import in_c
from tracers.programs import run_in
from warm import Python

from syncscope.cli import commands

pytest.importorskip("torch")

SELECTS = """
import torch
device = torch.device("cuda")
w = torch.randn(8, 4, device=device, requires_grad=True)
rows = torch.tensor([1, 2, 2], device=device)
for step in range(12):
    w.grad = None
    y = w * 2
    {loss}.sum().backward()
    copy = w.detach()
    copy[copy > 100] = 0.0
    copy[copy > 0] = copy[copy > 0] * 0.9
"""


@in_c
@pytest.mark.parametrize(
    ("loss", "told"),
    [
        ("(y[y > 0].sum() + y[y > 1000])", "2 gradients of selections by a mask per step are no sync here"),
        pytest.param("(y[rows].sum() + y.detach()[y > 0].sum())", "", marks=pytest.mark.slow),
    ],
    ids=["two, one of no rows", "by positions, and without a gradient"],
)
def test_gradients_of_selections_by_a_mask_are_told_beside_a_limit_that_holds(
    tmp_path: Path, loss: str, told: str, forked: Python
) -> None:
    """On CUDA the backward pass waits for each, and not on `ocl`: a gate of no syncs was passed there in silence. A write that
    waits is none: its read and its launches stand on one thread, also where the process was forked from one that had read."""
    pytest.importorskip("pyopencl")
    (tmp_path / "train.py").write_text(SELECTS.format(loss=loss))
    done = run_in(forked, "--device", "ocl", "train.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "out").glob("*/*.pt.trace.json.gz")
    gate = CliRunner().invoke(commands, ["report", str(file), "--max-syncs-per-step", "99"], standalone_mode=False)
    assert gate.return_value == 0, gate.output
    assert told in gate.stderr
    assert ("gradient" in gate.stderr) == bool(told)
