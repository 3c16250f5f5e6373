"""Every example of every rule of OpenCL C: exactly the marked lines are flagged, the fix is as shown, and what the rule says
happens when it is run on PoCL: as it is written, and no longer as it is mended.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
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
ENOUGH = 40.0  # seconds for what ends
HANGS = 12.0  # seconds after which it does not


def outcome(code: str, example: KernelExample, seconds: float) -> tuple[str, int]:
    """What becomes of it in a process of its own: right, wrong, an error, or it does not end; and how often the host waited."""
    told = json.dumps({"code": plain(code), "run": inspect.cleandoc(example.run), "suffix": example.suffix})
    try:
        done = subprocess.run(
            [sys.executable, RUNNER], input=told, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return "hang", 0
    assert done.returncode == 0, done.stderr
    word, *more = done.stdout.split()
    return word, int(more[0]) if word != "error" else 0


@pytest.mark.parametrize(("name", "rule"), [pytest.param(*item, id=item[0]) for item in RULES.items()])
def test_exactly_the_marked_lines_are_flagged_and_the_fix_is_as_shown(name: str, rule: KernelRule) -> None:
    assert list(failures(name, rule, Config())) == []


@pytest.mark.parametrize("example", EXAMPLES)
def test_what_it_warns_of_happens_and_no_longer_when_it_is_mended(example: KernelExample) -> None:
    pytest.importorskip("pyopencl")
    after = example.fixed or example.instead
    assert after is not None
    wanted = {Shows.HANG: "hang", Shows.WRONG: "wrong", Shows.ERROR: "error"}.get(example.shows)
    mended, waits = outcome(after, example, ENOUGH)
    assert mended == "right"
    word, before = outcome(example.code, example, HANGS if example.shows is Shows.HANG else ENOUGH)
    assert word == (wanted or "right")
    assert before > waits or example.shows is not Shows.WAITS
