"""`trace.try_fixes()`, called by programs: fixes are tried in the run, which goes on bit for bit as it would have."""

import json
from pathlib import Path
from typing import Any

import pytest
from warm import Python

from syncscope import kineto

pytest.importorskip("torch")
pytestmark = [pytest.mark.xdist_group("runs of a program"), pytest.mark.usefixtures("project", "library")]
TRAIN = """
import json
import random
import sqlite3
import sys
import torch
import slow_device
import syncscope

torch.manual_seed(0)
random.seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.2))
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 7)
history = []
losses = sqlite3.connect("losses.db")
losses.execute("CREATE TABLE losses (value, text)")


class Noisy(torch.utils.data.Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, at):
        return torch.randn(4) + random.random()


loader = torch.utils.data.DataLoader(Noisy(), 8, shuffle=True)


def counted():
    calls = 0

    def advance(x: torch.Tensor):
        nonlocal calls
        calls += 1
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        found = loss.detach().float()
        losses.execute("INSERT INTO losses VALUES (?, ?)", (calls, "x" * 500))
        losses.commit()
        history.append(found.item())
        history.append(f"{calls} {found.item():.3f}")
        print("a step", found.item(), flush=True)

    return advance


class Trainer:
    def __init__(self):
        self.count = 0

    def step(self, x: torch.Tensor):
        self.count += 1
        history.append(self.count)
        advance(x)


advance, trainer = counted(), Trainer()


def epoch(trace, asks):
    total, number = 0.0, 0
    for number, x in enumerate(loader):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        history.append(number)
        trace.step()
    if asks:
        show(trace.try_fixes(**OPTIONS))
    return total


def show(found):
    rows = [(fix.place.line, fix.rule, fix.safety, fix.decision, fix.ratio, fix.low, fix.high, fix.values, fix.why)
            for fix in found.fixes]
    print(json.dumps({"fixes": rows, "steps": found.steps, "seconds": found.seconds, "notes": found.notes}), file=sys.stderr)


ASKS = len(sys.argv) > 1
OPTIONS = {"budget": "300s", "unsafe_fixes": True, "show": False}
with syncscope.trace("runs") as trace:
    BODY
for number in range(2):
    print(epoch(trace, False))
print([repr(p.sum().tolist()) for p in model.state_dict().values()], history[-9:], len(history), trainer.count)
print(torch.rand(1), random.random(), scheduler.get_last_lr())
assert losses.execute("pragma integrity_check").fetchall() == [("ok",)]
"""
CALLED = """for x in loader:
        trainer.step(x)
        trace.step()
if ASKS:
    x = torch.ones(8, 4)
    show(trace.try_fixes(lambda: trainer.step(x), **OPTIONS))
    show(trace.try_fixes(lambda: trainer.step(x), **OPTIONS | {"unsafe_fixes": False}))
"""
LOOP = """for x in loader:
        trainer.step(x)
        trace.step()
if ASKS:
    show(trace.try_fixes(**OPTIONS))
"""
FUNCTION = "epoch(trace, ASKS)\n"
INSIDE = """for number, x in enumerate(loader):
        trainer.step(x)
        trace.step()
        if ASKS and number == 9:
            show(trace.try_fixes(**OPTIONS))
"""


def run(forked: Python, program: str, *arguments: str, code: int = 0) -> tuple[str, list[dict[str, Any]], str]:
    """What a program prints, what it was told of its fixes, and all that is said beside it."""
    Path("losses.db").unlink(missing_ok=True)
    Path("train.py").write_text(program)
    done = forked("train.py", *arguments)
    assert done.returncode == code, done.stderr
    told = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    return done.stdout, told, done.stderr


@pytest.mark.parametrize(
    ("body", "line"),
    [
        pytest.param(CALLED, "history.append(found", id="called"),
        pytest.param(FUNCTION, "total += loss", id="function", marks=pytest.mark.slow),
        pytest.param(LOOP, "history.append(found", id="loop", marks=pytest.mark.slow),
        pytest.param(INSIDE, "history.append(found", id="inside", marks=pytest.mark.slow),
    ],
)
def test_the_program_goes_on_bit_for_bit_and_knows_what_was_found(forked: Python, body: str, line: str) -> None:
    program = TRAIN.replace("BODY", body)
    expected, _, _ = run(forked, program)
    tried, told, _ = run(forked, program, "asks")
    assert tried == expected
    number = next(at for at, text in enumerate(program.splitlines(), 1) if line in text)
    (row,) = [row for row in told[0]["fixes"] if row[:2] == [number, "host-read"]]
    _, _, _, decision, ratio, low, high, values, _ = row
    assert (decision, values) == ("fix", "equal"), told
    assert low <= ratio <= high < 0.7  # by a clock that is drawn
    newest = max(Path("runs").rglob("*.pt.trace.json.gz"), key=lambda path: path.stat().st_mtime)
    found = kineto.read(newest).meta["verified"]
    assert found["way"] == "run"
    assert len(told) == 1 or all(fix["why"].endswith("unsafe_fixes=True tries it") for fix in found["fixes"])


GENERATOR = """batches = iter(loader)
    for x in batches:
        trainer.step(x)
        trace.step()
trace.try_fixes()
"""
NOTHING = """for x in loader:
        trainer.step(x)
        trace.step()

def ask():
    trace.try_fixes()

ask()
"""
CHANGED = """for x in loader:
        trainer.step(x)
        trace.step()
text = open(__file__).read()
open(__file__, "w").write(text.replace("history.append(found", "history.append(1.0 * found"))
show(trace.try_fixes(lambda: trainer.step(x), **OPTIONS))
"""


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (GENERATOR, "this loop cannot be begun again: it is over batches, and what that has given is gone"),
        pytest.param(
            NOTHING, "trace.try_fixes() stands in no loop that makes steps, and behind none", marks=pytest.mark.slow
        ),
    ],
)
def test_what_cannot_be_made_again_is_an_error_that_says_what_it_wants(forked: Python, body: str, why: str) -> None:
    _, _, said = run(forked, TRAIN.replace("BODY", body), code=1)
    assert why in said
    assert "trace.try_fixes(lambda: train_step(batch))" in said


def test_what_runs_may_not_be_what_its_file_holds_by_now(forked: Python) -> None:
    _, told, _ = run(forked, TRAIN.replace("BODY", CHANGED))
    assert {row[-1] for row in told[0]["fixes"] if row[1] == "host-read" and row[2] == "safe"} <= {
        "what it changes is reached through no function that is alive: `syncscope run --try` tries it"
    }
    assert "train.py holds other text than what runs, which is left as it is" in told[0]["notes"]
