"""Programs of their own where there is a GPU, because it is hidden from this process (see tests/conftest.py)."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")  # NVIDIA's, AMD's, that of Windows below WSL
Program = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def on_cuda(environment: dict[str, str]) -> Program:
    """Runs `python ARGUMENTS` with the GPU in sight, in the root of the checkout."""

    def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, *map(str, arguments)]
        return subprocess.run(
            command, cwd=ROOT, env=environment | {"COLUMNS": "150"}, capture_output=True, text=True, timeout=300
        )

    if sys.platform == "linux" and not any(map(os.path.exists, DRIVERS)):  # to ask torch would take two seconds
        pytest.skip("no driver of a GPU")
    asked = run("-c", "import torch; print(torch.cuda.is_available())")
    if asked.stdout.strip() != "True":
        pytest.skip("no CUDA device")
    return run
