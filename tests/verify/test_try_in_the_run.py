"""`syncscope run --try`, through the command line: fixes are tried in the run, and the run is what it would have been."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tracers.programs import run_in
from verify.slow_device import DEVICE
from warm import Python, in_a_process

from syncscope import kineto

pytest.importorskip("torch")
pytestmark = [pytest.mark.xdist_group("runs of a program"), pytest.mark.usefixtures("project", "library")]
TRAIN = """
import random
import time
import torch
import slow_device

device = torch.device("cuda")
torch.manual_seed(0)
random.seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.2)).to(device)
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 7)
history = []


class Noisy(torch.utils.data.Dataset):
    def __len__(self):
        return 480

    def __getitem__(self, at):
        return torch.randn(4) + random.random()


loader = torch.utils.data.DataLoader(Noisy(), 8, shuffle=True)


def advance(x):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    print("a step", float(loss.detach()), flush=True)
    return loss


LOOP


for epoch in range(5):
    print(epoch, repr(train()))
print([repr(p.sum().tolist()) for p in model.state_dict().values()], history[-3:], len(history))
print(torch.rand(1), random.random(), scheduler.get_last_lr(), open("log.txt").read())
"""
OVER = """
def train():
    total = 0.0
    log = open("log.txt", "a")
    for number, x in enumerate(loader):
        if number == 55:
            break
        loss = advance(x.to(device))
        total += loss.item()
        history.append(number)
        print(number, file=log)
    return total
"""
WHILE = """
def train():
    total, number, batches = 0.0, 0, iter(loader)
    while number < 55:
        try:
            x = next(batches)
        except StopIteration:
            batches = iter(loader)
            x = next(batches)
        total += advance(x.to(device)).item()
        number += 1
        history.append(number)
    open("log.txt", "w").write(str(total))
    return total
"""
GENERATOR = """
def batches():
    for x in loader:
        yield x * random.random()


class Trainer:
    def __init__(self):
        self.step = 0

    def train(self):
        total = 0.0
        for x in batches():
            self.step += 1
            total += advance(x.to(device)).item()
            history.append(self.step)
            if self.step % 55 == 0:
                open("log.txt", "a").write(f"{self.step}")
                return total


trainer = Trainer()
train = trainer.train
"""
TRIES = (
    "--try",
    "--unsafe-fixes",
    "--try-budget=300s",
    "--active=8",
)  # it is over after so many, however short they are
FORMS = {"for": OVER, "while": WHILE, "generator": GENERATOR}


def run(*options: str, code: int = 0) -> tuple[str, str]:
    """What a run prints, and what is said beside it."""
    Path("log.txt").unlink(missing_ok=True)
    done = in_a_process("-m", "syncscope", "run", "--device=cpu", *options, "train.py")
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def ran(forked: Python, *options: str, code: int = 0) -> tuple[str, str]:
    """The same of a fork that is the process in which `syncscope run` has the program run."""
    Path("log.txt").unlink(missing_ok=True)
    done = run_in(forked, "--device=cpu", "--output=runs", *options, "train.py", folder=Path.cwd())
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def result() -> dict[str, Any]:
    """What the newest recording says of the fixes."""
    newest = max(Path("runs").rglob("*.pt.trace.json.gz"), key=lambda path: path.stat().st_mtime)
    found: dict[str, Any] = kineto.read(newest).meta["verified"]
    return found


@pytest.mark.parametrize(
    "form", ["for", *(pytest.param(form, marks=pytest.mark.slow) for form in ("while", "generator"))]
)
def test_the_run_goes_on_bit_for_bit_as_written_and_the_fix_is_measured(
    project: Path, forked: Python, form: str
) -> None:
    (project / "train.py").write_text(TRAIN.replace("LOOP", FORMS[form].strip()))
    expected, _ = ran(forked)
    tried, said = ran(forked, *TRIES)
    assert tried == expected
    found = result()
    (fix,) = [fix for fix in found["fixes"] if fix["rule"] == "host-read"]
    assert (fix["values"], fix["kept"]) == ("equal", True), found
    assert fix["low"] <= fix["ratio"] <= fix["high"] < 0.05  # nothing else takes time by a clock that is drawn
    assert "the run goes on as written" in said
    where = f"train.py:{fix['line']}"
    assert f"trying 1 fix ({where}) in the next " in said, "which fixes those are"
    assert f"a step is {fix['ratio']:.3f}" in said


def test_what_fails_when_rewritten_is_put_back_and_the_run_goes_on(
    project: Path, library: Path, forked: Python
) -> None:
    """The device has no float64, as MPS has not: the rewritten line raises in its first step."""
    library.write_text(
        f"{DEVICE}\ndef double(self):\n    raise TypeError('no float64 here')\n\ntorch.Tensor.double = double\n"
    )
    (project / "train.py").write_text(TRAIN.replace("LOOP", OVER.strip()))
    expected, _ = ran(forked)
    tried, said = ran(forked, *TRIES)
    assert tried == expected
    (fix,) = [fix for fix in result()["fixes"] if fix["rule"] == "host-read"]
    assert (fix["values"], fix["kept"], fix["ratio"]) == ("changed", False, None)
    assert fix["why"] == "it fails: TypeError: no float64 here"
    assert "it fails: TypeError: no float64 here" in said


WAITS = f"""{DEVICE}
import os
import threading

slow, reads = item, 0

def item(self):
    global reads
    reads += "trying 1 fix" in open("err").read()
    while reads > 60 and not os.path.exists("interrupted"):
        threading.Event().wait(0.01)
    return slow(self)

torch.Tensor.item = item
"""  # in the third rehearsal


@pytest.mark.slow  # how a run ends is asked by the others, what Ctrl-C leaves by `test_verify_command.py`
def test_ctrl_c_meanwhile_finds_the_program_as_written(project: Path, library: Path, forked: Python) -> None:
    """What it saves then is what it had before its steps were rehearsed; those steps were never made."""
    library.write_text(WAITS)
    saving = TRAIN.replace("LOOP", OVER.strip()).replace("for epoch in range(5):\n", "try:\n  for epoch in range(5):\n")
    saves = 'print("saved", len(history), [repr(p.sum().tolist()) for p in model.parameters()], flush=True)'
    saving = saving.replace(
        "repr(train()))\n", f"repr(train()))\nexcept KeyboardInterrupt:\n    {saves}\n    raise SystemExit(7)\n"
    )
    saving = saving.replace("480", "48000").replace("== 55", "== 5500")  # no loop ends meanwhile
    (project / "train.py").write_text(saving)
    command = [sys.executable, "-m", "syncscope", "run", "--device=cpu", *TRIES, "train.py"]
    with open("out", "w") as out, open("err", "w") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err)
    end = time.monotonic() + 300
    while time.monotonic() < end and "trying 1 fix" not in Path("err").read_text():
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    Path("interrupted").touch()
    assert process.wait(200) == 7, Path("err").read_text()
    assert "tried: it was interrupted" in Path("err").read_text()
    made = Path("out").read_text().count("a step")
    stopping = f"        if len(history) == {made}:\n            raise KeyboardInterrupt\n        loss = advance"
    (project / "train.py").write_text(saving.replace("        loss = advance", stopping))
    expected, _ = ran(forked, code=7)
    assert Path("out").read_text() == expected


def test_what_cannot_be_tried_is_said(project: Path, forked: Python) -> None:
    plain = TRAIN.replace("LOOP", OVER.strip())
    (project / "train.py").write_text(plain)
    _, said = ran(forked, "--try", "--active=8")
    assert said.startswith("syncscope: nothing will be tried: train.py:")  # before a run of an hour, not after it
    assert "it is unsafe; --unsafe-fixes tries it" in said.partition("\n")[0]
    (project / "train.py").write_text(plain.replace("range(5)", "range(1)").replace("number == 55", "number == 9"))
    _, said = ran(forked, "--try", "--unsafe-fixes", "--active=20")
    assert "nothing was tried: the program ended after 9 steps, before its recording was over; it needs 24 at" in said
    (project / "train.py").write_text(plain.replace("range(5)", "range(1)").replace("number == 55", "number == 30"))
    _, said = ran(forked, "--try", "--unsafe-fixes", "--active=40")
    assert "after 30 steps, before its recording was over; `--active 10` records fewer" in said


def test_a_step_that_computes_something_else_each_time_is_said_to(project: Path, forked: Python) -> None:
    written = TRAIN.replace("LOOP", OVER.strip())
    (project / "train.py").write_text(
        written.replace("model(x).square().mean()", "model(x).square().mean() * (1 + time.time() % 1)")
    )
    _, said = ran(forked, "--try", "--unsafe-fixes", "--active=20")
    said = " ".join(said.split())
    assert "nothing was tried: the same steps, made twice as written, differ by" in said
    assert "Either a step computes something else each time, or something could not be put back" in said
    assert "not tried before the end" not in said


def test_a_schedule_without_an_end_is_refused_and_one_of_several_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    _, said = run("--try", "--whole", code=2)
    assert "--try begins when the recording is over" in said
    _, said = run("--unsafe-fixes", code=2)
    assert "add --try" in said
    monkeypatch.setenv("WORLD_SIZE", "2")
    _, said = run("--try", code=2)
    assert "this is one of 2 ranks" in said


def test_time_that_tells_too_little_is_named_with_the_option_that_gives_more(project: Path, forked: Python) -> None:
    (project / "train.py").write_text(TRAIN.replace("LOOP", OVER.strip()))
    _, said = ran(forked, "--try", "--unsafe-fixes", "--active=8", "--try-budget=0.001s")
    (fix,) = [fix for fix in result()["fixes"] if fix["rule"] == "host-read"]
    assert "of 0 s all of it went to what fixes compute; `--try-budget 1m` holds more" in fix["why"]
    assert fix["why"] in said
