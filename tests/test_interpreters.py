"""No Python that we start imports what lies in the folder in which it is started: that may be a stranger's."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
import sources

from syncscope import interpreters

COMMAND = str(Path(sys.executable).with_name("syncscope"))
NAMES = (
    "typing",
    "pickle",
    "functools",
    "contextlib",
    "collections",
    "runpy",
    "multiprocessing",
    "importlib",
    "click",
    "json",
)


@pytest.fixture
def strange(tmp_path, monkeypatch):
    """A folder with modules of the standard library's names, each of which leaves a trace where it runs."""
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(
            f"open({str(tmp_path / 'ran')!r}, 'a').write('{name} ')\nraise SystemExit(9)\n"
        )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(folder, *command):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert not (folder / "ran").exists(), (folder / "ran").read_text()
    return done


def test_code_of_ours_runs_and_finds_syncscope(strange):
    done = run(
        strange, *interpreters.command("import typing, pickle; print(syncscope.__name__, sys.argv[1:])", "a", "b")
    )
    assert (done.stdout, done.stderr) == ("syncscope ['a', 'b']\n", "")


def test_a_program_that_is_recorded_sees_its_own_folder_alone(strange):
    own = strange / "own"
    own.mkdir()
    (own / "beside.py").write_text("VALUE = 7\n")
    (own / "program.py").write_text(
        "import sys, typing, beside\nprint(beside.VALUE, sys.flags.safe_path, sys.path[0])\n"
    )
    done = run(strange, COMMAND, "run", "--quiet", "own/program.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"7 False {own}\n", "as for Python itself"


def test_the_command_imports_nothing_from_where_it_is_called(strange):
    (strange / "train.py").write_text("import torch\n\n\ndef forward(x: torch.Tensor):\n    return x.exp()[x > 0]\n")
    done = run(strange, COMMAND, "lint", "--jobs", "2", "train.py")
    assert done.returncode == 1, done.stderr


def doubled(numbers):
    return [2 * number for number in numbers]


def test_workers_that_are_spawned_import_nothing_from_there(strange, monkeypatch):
    """As on macOS and Windows, where workers are no forks."""
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import os
os.chdir({str(strange)!r})
from test_interpreters import doubled
from syncscope.linter import pool
pool.sys = type("", (), {{"platform": "darwin"}})
if __name__ == "__main__":
    print(sorted(sum(pool.spread(doubled, [[[1, 2]], [[3]]], 2, lambda item: []), [])), "PYTHONSAFEPATH" in os.environ)
"""
    program = strange / "own"
    program.mkdir()
    (program / "program.py").write_text(code)
    done = run(strange, sys.executable, str(program / "program.py"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[[2, 4], [6]] False\n"


@sources.IN_ONE_WORKER
def test_every_interpreter_that_we_start_is_started_so():
    """`sys.executable` in a list is a command: there is one place for those, and each exception says why."""
    besides = {
        "interpreters.py": "it is that place",
        "verify/processes.py": "the fork server becomes the program, whose folder counts",
        "verify/clearing.py": "it is started by verify, which runs the program of that folder",
    }
    found = set()
    for path in sources.FILES:
        for node in sources.nodes(path):
            if isinstance(node, (ast.List, ast.Tuple)) and node.elts and ast.unparse(node.elts[0]) == "sys.executable":
                found.add(str(path.relative_to(sources.ROOT)))
    assert found <= set(besides)


def test_the_environment_is_as_before(monkeypatch):
    for before in (None, "0"):
        monkeypatch.delenv(interpreters.SAFE, raising=False)
        if before is not None:
            monkeypatch.setenv(interpreters.SAFE, before)
        with interpreters.safe_path():
            assert os.environ[interpreters.SAFE] == "1"
        assert os.environ.get(interpreters.SAFE) == before
