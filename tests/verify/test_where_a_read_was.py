"""A version that chooses by a tensor where a condition read one: that read is gone, and the losses decide."""

import time
from pathlib import Path

import pytest

from syncscope.verify.compared import Compared
from syncscope.verify.processes import Processes
from syncscope.verify.request import Program
from syncscope.verify.results import CHANGED, WITHIN, Verification
from syncscope.verify.runs import Runs, Settings
from syncscope.verify.two import OTHER

pytest.importorskip("torch")
pytestmark = [pytest.mark.xdist_group("runs of a program"), pytest.mark.usefixtures("imported_once")]
TRAIN = """
import torch

torch.manual_seed(0)
model = torch.nn.Linear(8, 5).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(64, 8).to("cuda"), torch.randint(0, 5, (64,)).to("cuda")
for step in range(12):
    losses = torch.nn.functional.cross_entropy(model(x), y, reduction="none")
    if losses[3] > 0.001:
        loss = losses.mean()
    else:
        loss = losses.sum()
    print(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
CONDITION = TRAIN[TRAIN.index("    if losses") : TRAIN.index("    print(")]


def test_a_read_that_is_gone_is_left_out_and_the_losses_decide(tmp_path: Path) -> None:
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    one.write_text(TRAIN)
    with Processes(time.monotonic() + 600, lambda line: None) as processes:
        program = Program(str(one), device="cpu")
        runs = Runs(program, Settings(600, steps=10), processes, lambda what: None, Verification("one.py"))
        compared = Compared(runs)
        compared.as_written(twice=False)
        for choice, values in (("(losses * 0.3).sum() / 19.2", WITHIN), ("(losses * 0.3).sum() / 19.3", CHANGED)):
            other.write_text(
                TRAIN.replace(CONDITION, f"    loss = torch.where(losses[3] > 0.001, {choice}, losses.sum())\n")
            )
            runs.other = Program(str(other), device="cpu")
            compared.note(OTHER, compared.must_run(OTHER, runs.other))
            found, why, apart = compared.judge(OTHER, rounds=True, safe=False)
            assert apart is not None, why
            assert (found, apart.read, apart.compared) == (values, 20, 10), why
