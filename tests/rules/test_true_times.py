"""A clock that is read while the device works: to wait before makes its time true, where there is a device, and is no fault."""

import pytest

pytest.importorskip("libcst")

from rules.driver import findings, fixed

from syncscope.linter.config import Config
from syncscope.linter.engine import check

LOOP = """\
import time
import torch

{head}
def train(model, loader, optimizer):
    begin = time.time()
    for x in loader:
        loss = model({sent}).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        took = time.time() - begin
        begin = time.time()
        print(took)
"""
BARE = "        torch.cuda.synchronize()\n        took"
ASKED = "        if torch.cuda.is_available():\n            torch.cuda.synchronize()\n        took"
PROGRAMS = {
    "where there may be none": (
        LOOP.format(head='device = "cuda" if torch.cuda.is_available() else "cpu"\n', sent="x.to(device)"),
        ASKED,
    ),
    "where nothing says": (LOOP.format(head="", sent="x.to(model.device)"), ASKED),
    "where there must be one": (LOOP.format(head="", sent="x.cuda(non_blocking=True)"), BARE),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_wait_that_is_put_before_a_clock_asks_for_cuda(program):
    code, waiting = PROGRAMS[program]
    after = fixed(code, "unsynchronized-timing")
    assert waiting in after
    (wait,) = findings(after, "explicit-synchronize", "unsynchronized-timing")
    assert wait.hot
    assert not wait.heat.whole, "it is told in a line, and fails no gate"


def test_the_wait_is_not_said_of_what_seldom_runs():
    config = Config(select=("unsynchronized-timing",), all=True)
    (clock,) = check("example.py", PROGRAMS["where nothing says"][0].encode(), config).findings
    assert clock.fix.why_by_hand == "no step gains by it: it adds a wait, by which the time is true"


def test_what_waits_before_no_clock_is_told_whole():
    code = PROGRAMS["where there must be one"][0].replace("        took", BARE, 1)
    moved = code.replace("        torch.cuda.synchronize()\n", "").replace(
        "        optimizer.step()\n", "        torch.cuda.synchronize()\n        optimizer.step()\n"
    )
    (wait,) = (f for f in findings(moved, "explicit-synchronize"))
    assert wait.heat.whole
