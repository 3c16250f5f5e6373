"""What docs/development.md says under "Adding something", done: its examples go where they say, into a copy of the package."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import syncscope
from syncscope import kineto
from syncscope.model.trace import Event, Kind, Lane, Trace

ROOT = Path(syncscope.__file__).parents[1]
EXAMPLES = re.compile(r"^ *```python\n *# (syncscope/[\w/]+\.py)(?:: (\w+))?\n(.*?)```", re.DOTALL | re.MULTILINE)
CODE = """import torch

def train(x: torch.Tensor):
    return x.cuda().item()
"""
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs Python in a folder that holds the package, with all examples of the page in it."""
    here = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "syncscope", here / "syncscope")  # with what Python has compiled of it
    for path, table, code in EXAMPLES.findall((ROOT / "docs" / "development.md").read_text(encoding="utf-8")):
        drop(here / path, table, textwrap.dedent(code))
    (here / "train.py").write_text(CODE)
    kineto.save(Trace.of([Event(Kind.OP, "aten::mm", Lane(1, 1), 0, 700)]), here / "run.json")
    environment = {**os.environ, "PYTHONPATH": str(here)}

    def run(*args: str) -> "subprocess.CompletedProcess[str]":
        command = (sys.executable, "-P", *args)
        return subprocess.run(command, capture_output=True, text=True, cwd=here, env=environment, timeout=300)

    return run


def drop(path: Path, table: str, code: str) -> None:
    """A file of its own, or lines into a table of one that is there."""
    if not table:
        assert not path.exists(), "an example must not hide what there is"
        path.write_text(code, encoding="utf-8")
        return
    text, head = path.read_text(encoding="utf-8"), f"{table} = {{\n"
    assert text.count(head) == 1
    path.write_text(text.replace(head, head + code), encoding="utf-8")


def test_a_format_that_is_dropped_in_is_offered_by_the_commands(run: Run) -> None:
    done = run("-m", "syncscope", "lint", "--isolated", "--no-cache", "--format", "csv", "train.py")
    assert done.stdout.startswith("train.py,4,host-read,"), done.stderr
    assert run("-m", "syncscope", "report", "--format", "csv", "run.json").returncode == 0


def test_what_is_known_of_a_library(run: Run) -> None:
    code = """import torch, torch_scatter

def pool(x: torch.Tensor, index: torch.Tensor):
    sized = torch_scatter.scatter(x, index, 0, None, 8)
    return sized + torch_scatter.scatter(x, index)
"""
    write = f"import pathlib; pathlib.Path('pool.py').write_text({code!r})"
    assert run("-c", write).returncode == 0
    done = run("-m", "syncscope", "lint", "--isolated", "--no-cache", "--all", "--format", "csv", "pool.py")
    assert [row.split(",")[1:3] for row in done.stdout.splitlines()] == [["5", "hidden-read"]], done.stderr


def test_a_command_that_is_dropped_in_is_listed_and_runs(run: Run) -> None:
    assert "How many events a recording holds." in run("-m", "syncscope", "--help").stdout
    done = run("-m", "syncscope", "count", "run.json")
    assert (done.returncode, done.stdout) == (0, "1 events\n"), done.stderr
    assert run("-m", "syncscope", "count", "nowhere.json").returncode == 2


def test_an_operator_of_the_device(run: Run) -> None:
    pytest.importorskip("pyopencl")
    done = run(
        "-W",
        "error",  # a fallback to the CPU is told as a warning
        "-c",
        """
import json, torch, syncscope.kernels
from syncscope.kernels.operators import native
x = torch.tensor([0.5, 2.0, 0.0, -1.0, float("nan")])
same = torch.equal(torch.special.entr(x.to("ocl")).cpu().nan_to_num(), torch.special.entr(x).nan_to_num())
print(json.dumps(["special_entr" in native, same]))
""",
    )
    assert done.stdout, done.stderr
    assert json.loads(done.stdout) == [True, True]
