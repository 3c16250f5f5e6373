"""How much the linter does for each node of what it reads, counted: seconds would say how busy the machine is.

No part of it is slow by itself, so that it gets slower by many changes of which nobody sees one: a question that is asked of
each call, a file that is gone through once more. All that it calls is counted, of its own and of what Python has in C, and how
much text it has Python parse.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parents[2] / "benchmarks" / "programs"
FIRST = "dcgan.py"  # imports what is imported later, which is not counted
COUNTED = ("ctc_speech.py", "dqn.py", "gcn_cora.py", "nanogpt.py", "sac.py", "simclr.py", "triplet_mining.py")
CALLS = 39.6  # for a node of their trees: 38.6 by Python 3.11, 40.7 by 3.13
PARSED = 1.25  # times of their text
# of what is known: a change that does less still writes down what it does, so that it is not lost
MORE, LESS = 1.06, 0.9

COUNT = """
import ast, json, os, sys
import syncscope

home = os.path.dirname(syncscope.__file__) + os.sep
calls, parsed, parse = 0, 0, ast.parse


def seen(frame, event, _):
    global calls
    code = frame.f_code
    if event[-4:] == "call" and code.co_filename.startswith(home) and not code.co_name.endswith("comp>"):
        calls += 1  # from Python 3.12 on a comprehension is no call


def counted(text, *args, **more):
    global parsed
    parsed += len(text)
    return parse(text, *args, **more)


first, *paths = sys.argv[1:]
syncscope.lint(first)
ast.parse = counted
sys.setprofile(seen)
found = syncscope.lint(*paths)
sys.setprofile(None)
print(json.dumps([calls, parsed, len(found)]))
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[float, float]:
    """How often something was called for each node, and how many times as much as they hold was parsed: in a process of its
    own, in which nothing is known yet and sets have one order."""
    folder = tmp_path_factory.mktemp("programs")
    for name in (FIRST, *COUNTED):
        shutil.copy(PROGRAMS / name, folder)
    env = os.environ | {"PYTHONHASHSEED": "0", "SYNCSCOPE_CACHE_DIR": os.devnull}
    said = subprocess.run(
        [sys.executable, "-c", COUNT, FIRST, *COUNTED], cwd=folder, env=env, check=True, capture_output=True
    )
    calls, parsed, findings = json.loads(said.stdout)
    assert findings
    texts = [(folder / name).read_bytes() for name in COUNTED]
    nodes = sum(1 for text in texts for _ in ast.walk(ast.parse(text)))
    return calls / nodes, parsed / sum(map(len, texts))


def test_no_more_is_called_for_each_node_than_is_known(done):
    assert LESS < done[0] / CALLS < MORE, f"{done[0]:.1f} calls for each node"


def test_no_more_is_parsed_than_is_known(done):
    assert LESS < done[1] / PARSED < MORE, f"{done[1]:.2f} times of the text"
