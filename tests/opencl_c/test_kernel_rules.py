"""Every example of every rule of OpenCL C: exactly the marked lines are flagged, the fix is as shown, and what the rule says
happens when it is run on PoCL: as it is written, and no longer as it is mended.
"""

from __future__ import annotations

import inspect
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from syncscope.linter.config import Config
from syncscope.linter.examples import failures, plain
from syncscope.model.example import KernelExample, Shows
from syncscope.opencl_c import KernelRule
from syncscope.opencl_c.rules import builtin

RULES = builtin()
EXAMPLES = [
    pytest.param(example, id=f"{name}-{number}")
    for name, rule in RULES.items()
    for number, example in enumerate(rule.EXAMPLES, 1)
    if isinstance(example, KernelExample) and example.shows is not Shows.NOTHING
]
RUNNER = Path(__file__).with_name("on_pocl.py")
ENOUGH = 60.0  # seconds for what ends, a compiler's among them
HANGS = 0.5  # seconds of a processor after which a kernel does not end: to compile it takes a tenth, and to run it microseconds
LOOK = 0.05  # seconds between two looks at that


def computed(pid: int) -> float:
    """The seconds of a processor that a process has taken, all of its threads."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


class Pocl:
    """A process that runs one example after another; another one, where it was left hanging."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def outcome(self, code: str, example: KernelExample, may_hang: bool = False) -> tuple[str, int]:
        """What becomes of it: right, wrong, an error, or a hang, if it computes for longer; and how often the host waited."""
        if self._process is None:
            command = [sys.executable, str(RUNNER)]
            # unbuffered: select() is to see each line
            self._process = subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        told = {"code": plain(code), "run": inspect.cleandoc(example.run), "suffix": example.suffix}
        process.stdin.write(json.dumps(told).encode() + b"\n")
        line, began, until = b"running", 0.0, time.monotonic() + ENOUGH
        while line.strip() == b"running":
            if select.select([process.stdout], [], [], LOOK)[0]:
                line, began = process.stdout.readline(), computed(process.pid)
            elif may_hang and began and computed(process.pid) > began + HANGS:
                self.end()
                return "hang", 0
            assert time.monotonic() < until, "it never began, or does not end"
        word, waits = line.decode().split()
        return word, int(waits)

    def end(self) -> None:
        """Ends the process, were it in the middle of a kernel."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


@pytest.fixture(scope="module")
def pocl() -> Iterator[Pocl]:
    pytest.importorskip("pyopencl")
    runner = Pocl()
    yield runner
    runner.end()


@pytest.mark.parametrize(("name", "rule"), [pytest.param(*item, id=item[0]) for item in RULES.items()])
def test_exactly_the_marked_lines_are_flagged_and_the_fix_is_as_shown(name: str, rule: KernelRule) -> None:
    assert list(failures(name, rule, Config())) == []


@pytest.mark.parametrize("example", EXAMPLES)
def test_what_it_warns_of_happens_and_no_longer_when_it_is_mended(example: KernelExample, pocl: Pocl) -> None:
    after = example.fixed or example.instead
    assert after is not None
    wanted = {Shows.HANG: "hang", Shows.WRONG: "wrong", Shows.ERROR: "error"}.get(example.shows)
    mended, waits = pocl.outcome(after, example)
    assert mended == "right"
    word, before = pocl.outcome(example.code, example, example.shows is Shows.HANG)
    assert word == (wanted or "right")
    assert before > waits or example.shows is not Shows.WAITS
