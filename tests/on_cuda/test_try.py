"""Fixes tried inside of a run on a GPU: it goes on bit for bit as without, and each fix has its row."""

import json
from pathlib import Path
from typing import Any

import pytest
from on_cuda.conftest import ROOT, Program

from syncscope import kineto

HOT = """
import hashlib
import random
import sys
import torch
import syncscope

torch.manual_seed(0)
random.seed(0)
device = torch.device(sys.argv[1])
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(256, 10))
model = model.to(device)
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
data = torch.utils.data.TensorDataset(torch.randn(32 * 400, 256), torch.randint(10, (32 * 400,)))
loader = torch.utils.data.DataLoader(data, 32, shuffle=True)
history = []


def train_step(images: torch.Tensor, labels: torch.Tensor):
    images, labels = images.to(device), labels.to(device)
    losses = torch.nn.functional.cross_entropy(model(images), labels, reduction="none")
    hard = losses.detach() > 2.0
    loss = losses.mean() + 0.1 * losses[hard].sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    found = loss.detach().float()
    history.append(found.item())
    history.append(f"{found.item():.3f}")
    return loss.detach()


def epoch(trace=None):
    total = 0.0
    for images, labels in loader:
        loss = train_step(images, labels)
        total += loss.item()
        if trace is not None:
            trace.step()
    return total


def digest():
    told = hashlib.blake2b()
    for _, tensor in sorted(model.state_dict().items()):
        told.update(tensor.cpu().numpy().tobytes())
    return told.hexdigest(), history[-4:], len(history), torch.rand(1).item(), torch.rand(1, device=device).item()
"""
PLAIN = """
for number in range(3):
    print(epoch())
print(digest())
"""
ASKS = """
how = sys.argv[2]
with syncscope.trace() as trace:
    print(epoch(trace))
    if how == "loop":
        for images, labels in loader:
            total = train_step(images, labels)
            trace.step()
        found = trace.try_fixes(budget="10s", unsafe_fixes=True)
    else:
        for images, labels in loader:
            total = train_step(images, labels)
            trace.step()
if how == "step":
    found = trace.try_fixes(lambda: train_step(images, labels), budget="10s", unsafe_fixes=True, show=False)
print(epoch())
print(digest())
if how != "none":
    for fix in found.fixes:
        print(fix, file=sys.stderr)
    print("notes", found.notes, found.steps, found.seconds, file=sys.stderr)
    assert any(fix.values == "equal" and fix.low for fix in found.fixes)
"""


def result(folder: Path) -> dict[str, Any]:
    """What a recording says of its fixes."""
    found: dict[str, Any] = kineto.read(next(folder.rglob("*.pt.trace.json.gz"))).meta["verified"]
    return found


def test_a_run_that_tries_is_the_run_that_does_not(on_cuda: Program, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(HOT + PLAIN)
    alone = on_cuda("-m", "syncscope", "run", "--quiet", "-o", tmp_path / "a", tmp_path / "train.py", "cuda")
    assert not alone.returncode, alone.stderr
    options = ("--try", "--unsafe-fixes", "--try-budget=10s", "-o", tmp_path / "b")
    tried = on_cuda("-m", "syncscope", "run", *options, tmp_path / "train.py", "cuda")
    assert not tried.returncode, tried.stderr
    assert tried.stdout == alone.stdout, tried.stderr
    found = result(tmp_path / "b")
    print(tried.stderr, json.dumps(found["fixes"], indent=1))
    assert found["device"] == "cuda"
    assert any(fix["values"] == "equal" and fix["low"] is not None for fix in found["fixes"]), found


@pytest.fixture(scope="module")
def expected(on_cuda: Program, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the program prints that does not ask."""
    program = tmp_path_factory.mktemp("alone") / "train.py"
    program.write_text(HOT + ASKS)
    alone = on_cuda(program, "cuda", "none")
    assert not alone.returncode, alone.stderr
    return alone.stdout.splitlines()


@pytest.mark.parametrize("how", ["step", "loop"])
def test_a_program_that_asks_goes_on_as_if_it_had_not(
    on_cuda: Program, tmp_path: Path, expected: list[str], how: str
) -> None:
    (tmp_path / "train.py").write_text(HOT + ASKS)
    tried = on_cuda(tmp_path / "train.py", "cuda", how)
    assert not tried.returncode, tried.stderr
    print(tried.stderr)
    assert [line for line in tried.stdout.splitlines() if line in expected] == expected, tried.stdout


@pytest.mark.parametrize(("sample", "device"), [("segmentation", ("--device", "cuda")), ("gan", ())])
def test_a_sample_is_tried(on_cuda: Program, tmp_path: Path, sample: str, device: tuple[str, ...]) -> None:
    program = (ROOT / "samples" / f"{sample}.py", *device, "--steps", 1000)
    options = ("--try", "--unsafe-fixes", "--try-budget=10s", "-o", tmp_path)
    tried = on_cuda("-m", "syncscope", "run", *options, *program)
    assert not tried.returncode, tried.stderr
    print(tried.stdout[-2000:], tried.stderr)
    assert result(tmp_path)["way"] == "run"
