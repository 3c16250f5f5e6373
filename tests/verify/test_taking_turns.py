"""Versions side by side: who goes on when, what rests meanwhile, and what is left behind."""

import re
import time
from pathlib import Path

import pytest

from syncscope.verify.processes import Processes, RunFailedError
from syncscope.verify.request import Program, Request
from syncscope.verify.search import groups
from syncscope.verify.versions import AGAIN, AS_WRITTEN

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("imported_once")
TRAIN = """
import os, sys, threading, time, torch
name, log = sys.argv[1], open(sys.argv[2], "a")
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
ticks = 0

def tick():
    global ticks
    while True:
        time.sleep(0.01)
        ticks += 1

threading.Thread(target=tick, daemon=True).start()
torch.save(model.state_dict(), "checkpoint.pt")
for step in range(40):
    time.sleep(0.05)
    model(torch.ones(2)).sum().backward()
    before = ticks
    optimizer.step()
    print(name, ticks - before, file=log, flush=True)
    if step == int(sys.argv[3]):
        raise ValueError("not beside another")
"""


def request(name: str, log: Path, fails: int = -1) -> Request:
    return Request("time", Program("train.py", (name, str(log), str(fails))), "", steps=15, beside=True)


def test_runs_take_turns_of_five_steps_and_rest_whole_in_between(project: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Processes(time.monotonic() + 500) as runs:
        found = runs.side_by_side([(request("a", log), {}), (request("b", log), {})])
    assert [run.found["steps"] for run in found] == [15, 15]
    assert all(len(run.found["lengths"]) == 3 + 4 + 4 for run in found)  # the first step of a block does not count
    lines = [line.split() for line in log.read_text().splitlines()]
    made = "".join(name for name, _ in lines)
    assert re.fullmatch("a{4}b{4}(a{5}b{5})*", made), made  # it is printed when the turn comes again
    assert max(int(ticks) for _, ticks in lines) < 20  # of the 25 and more while the other made its steps
    assert (project / "checkpoint.pt").read_text() == "of yesterday"
    assert sorted(path.name for path in project.iterdir()) == ["checkpoint.pt", "train.py"]


def test_where_one_fails_all_end_and_nothing_is_left(project: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Processes(time.monotonic() + 500) as runs, pytest.raises(RunFailedError) as failed:
        runs.side_by_side([(request("a", log), {}), (request("b", log, fails=2), {})])
    assert failed.value.why == "ValueError: not beside another"
    assert (project / "checkpoint.pt").read_text() == "of yesterday"


def test_where_a_device_holds_few_copies_two_run_at_a_time() -> None:
    a, b, c = (frozenset({number}) for number in range(3))
    assert groups([a, b, c], 4) == groups([a, b, c], 1) == [[AS_WRITTEN, AGAIN, a, b], [AS_WRITTEN, AGAIN, c]]
    two = groups([a, b], 3)
    assert two == groups([a, b], 2) == [[AS_WRITTEN, AGAIN], [AS_WRITTEN, a], [AS_WRITTEN, b], [a, b]]
    assert groups([a], 2) == [[AS_WRITTEN, AGAIN], [AS_WRITTEN, a]]
    assert max(map(len, groups([a, b, c], 2))) == 2
