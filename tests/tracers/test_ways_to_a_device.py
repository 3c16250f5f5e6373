"""`syncscope run --device cpu`: however a program sends its tensors to the device, their syncs are told."""

import subprocess
import sys
from pathlib import Path

import pytest
from in_c import in_c
from tracers.programs import recorded, run_in
from warm import Python

from syncscope.model.trace import Kind

torch = pytest.importorskip("torch")

WAYS_TO_A_DEVICE = """
import torch
name = "cuda" if torch.cuda.is_available() else "cpu"
device = torch.device(name)
norm = torch.nn.BatchNorm1d(4).to(device)
frozen = torch.nn.Linear(4, 4).requires_grad_(False).to(device)
host = torch.device("cpu")
for step in range(4):
    x = torch.rand(4)
    x.to(name).sum().item()
    x.clone().to(device).sum().item()
    x.clone().to(torch.device("cuda", 0)).sum().item()
    x.clone().to(device, non_blocking=True).sum().item()
    x.clone().to(norm.running_mean).sum().item()
    torch.zeros(4, device=device).sum().item()
    torch.zeros(4, device=norm.running_mean.device).sum().item()
    norm.running_mean.sum().item()
    frozen.weight.sum().item()
    x.clone().cuda(device).sum().item()
    torch.rand(4, device="cpu").sum().item()  # of the host, from here on
    torch.rand(4, device=host).sum().item()
    torch.rand(4).to(host).sum().item()
torch.set_default_device(device)
torch.zeros(4).sum().item()
torch.zeros(4, device="cpu").sum().item()
"""


@in_c
def test_each_way_to_the_device_is_followed_in_a_dry_run(tmp_path: Path, forked: Python) -> None:
    (tmp_path / "train.py").write_text(WAYS_TO_A_DEVICE)
    done = run_in(forked, "--whole", "--device", "cpu", "train.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [e.place.line for e in recorded(tmp_path) if e.kind == Kind.READ and e.place]
    assert lines == [*range(10, 20)] * 4 + [24], done.stderr


def test_a_program_that_was_told_to_use_the_cpu_is_followed_in_a_dry_run(tmp_path: Path, forked: Python) -> None:
    """It asks for no device by name: which of its tensors would be on one is what it says of the CPU."""
    (tmp_path / "train.py").write_text(
        "import sys, torch\ndevice = torch.device(sys.argv[1])\nfor step in range(3):\n"
        "    x = torch.rand(4).to(device)\n    x.sum().item()\n"
    )
    done = run_in(forked, "--whole", "--device", "cpu", "train.py", "cpu", folder=tmp_path)
    assert "3 syncs" in done.stderr


CHECKPOINT = """
import torch
device = torch.device("cuda")
for step in range(2):
    torch.ones(3, device=device).sum().item()
torch.save(torch.ones(3, device=device), "last.pt")
print("back", torch.load("last.pt").device.type, torch.load("last.pt", map_location=device).device.type)
"""


def test_a_checkpoint_of_a_program_on_a_device_lent_to_it_is_opened_by_pytorch_alone(
    tmp_path: Path, forked: Python
) -> None:
    pytest.importorskip("pyopencl")
    (tmp_path / "train.py").write_text(CHECKPOINT)
    done = run_in(forked, "--device", "ocl", "train.py", folder=tmp_path)
    assert "back ocl ocl" in done.stdout, done.stderr
    code = "import torch; print(torch.load('last.pt', map_location='cpu').tolist())"
    alone = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert alone.stdout == "[1.0, 1.0, 1.0]\n"
    assert b"ocl" not in (tmp_path / "last.pt").read_bytes(), "a GPU that reads it takes it for its own"
