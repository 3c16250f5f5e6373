"""`syncscope run` of programs that fail or crash before their first step: what is said, and what is kept."""

import signal
from pathlib import Path

import pytest
from click.testing import CliRunner
from tracers.programs import run, run_in
from warm import Python

from syncscope.cli import commands

torch = pytest.importorskip("torch")

SPARSE = """
import torch
layer = torch.nn.Linear(2, 2).cuda()
torch.sparse_coo_tensor(torch.tensor([[0, 1], [1, 0]]), torch.ones(2), (2, 2)).cuda()
"""


def test_a_program_that_fails_before_its_first_step(tmp_path: Path, forked: Python) -> None:
    pytest.importorskip("pyopencl")
    (tmp_path / "train.py").write_text(SPARSE)
    done = run_in(forked, "--device", "ocl", "train.py", "--lr=1", folder=tmp_path)
    assert done.returncode == 1
    frames = done.stderr.partition("Traceback")[2]
    assert frames.count('File "') == 1  # the user's alone
    assert "NotImplementedError: ocl has no sparse tensors" in done.stderr
    assert "hint: `syncscope run --device cpu train.py --lr=1`" in done.stderr
    assert "NotImplementedError ended the program before its first step" in done.stderr
    assert "do first" not in done.stderr
    file = next(line for line in done.stderr.splitlines() if line.startswith("wrote ")).removeprefix("wrote ")
    told = CliRunner().invoke(commands, ["report", file], standalone_mode=False)
    assert "NotImplementedError ended the program before its first step" in " ".join(told.output.split())
    assert "do first" not in told.output
    assert "shorter" not in told.output, "nothing is said of what a step costs"
    gate = CliRunner().invoke(commands, ["report", file, "--max-syncs-per-step", "1"], standalone_mode=False)
    assert gate.return_value == 2, "no limit can be judged by it"


CRASHED = """
import os, time, torch
torch.ones(3).cuda().sum().item()
time.sleep(1.5)  # what Python saw is written once a second
torch.ones(3).cuda().sum().item()
os.abort()
"""


def test_a_program_that_crashes_before_its_first_step(tmp_path: Path) -> None:
    pytest.importorskip("pyopencl")
    (tmp_path / "train.py").write_text(CRASHED)
    done = run("--device", "ocl", "train.py", folder=tmp_path)
    assert done.returncode == -signal.SIGABRT
    assert "SIGABRT ended the program before its first step" in done.stderr
    (file,) = tmp_path.glob("**/*.pt.trace.json.gz")
    told = CliRunner().invoke(commands, ["report", str(file)], standalone_mode=False)
    assert "SIGABRT ended the program before its first step" in " ".join(told.output.split())
    assert "do first" not in told.output
