"""`syncscope verify` of a program in which there is nothing to try: that is said before anything is run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from analysis.drawn import COLUMN
from click.testing import CliRunner, Result
from verify.programs import TRAIN

from syncscope import kineto
from syncscope.cli.verify import command
from syncscope.errors import UserError
from syncscope.model.source import Place
from syncscope.model.trace import Event, Flag, Kind, Lane, Trace
from syncscope.verify.own_files import own_files
from syncscope.verify.request import Program

RAN = "open('ran', 'w').close()\n"
IMPORTED = """
import os
if os.environ.get("TOUCHED"):
    open(os.environ["TOUCHED"], "w").close()
"""  # in place of torch
BY_HAND = """
import torch
import steps

def train(model, loader, optimizer):
    for x in loader:
        loss = model(x.cuda()).mean()
        loss.backward()
        optimizer.step()
        if loss.item() > 3:
            print(torch.nonzero(x.cuda()))
"""

CONFIGURATOR = """
import sys

for arg in sys.argv[1:]:
    if "=" not in arg:
        config_file = arg
        exec(open(config_file).read())
    else:
        globals()[arg] = 1
"""


def surroundings(folder: Path) -> dict[str, str]:
    """With a torch of its own, which notes that it is imported."""
    installed = folder / "site-packages"
    installed.mkdir(exist_ok=True)
    (installed / "torch.py").write_text(IMPORTED)
    return {"PYTHONPATH": str(installed), "TOUCHED": str(folder / "touched")}


def verify(patch: pytest.MonkeyPatch, folder: Path, *arguments: str) -> Result:
    """In that folder, in this process; the one that runs programs is another."""
    patch.chdir(folder)
    for name, value in surroundings(folder).items():
        patch.setenv(name, value)
    return CliRunner().invoke(command, [*arguments], standalone_mode=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(BY_HAND + RAN)
    (tmp_path / "steps.py").write_text("STEPS = 40\n")
    return tmp_path


def test_what_is_there_and_why_it_is_not_tried_is_listed_and_nothing_is_run(project: Path) -> None:
    started = [sys.executable, "-m", "syncscope", "verify", "train.py"]
    environment = os.environ | surroundings(project)
    done = subprocess.run(started, cwd=project, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert "train.py:10  host-read: no rewrite is known" in done.stderr
    assert "there is no fix to try in train.py: its 2 files were read, nothing was run" in done.stderr
    assert "hint: --stale measures" in done.stderr
    assert not (project / "ran").exists()
    assert not (project / "touched").exists(), "torch was imported"


def test_who_reads_json_has_the_list_too(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = verify(monkeypatch, project, "--format=json", "train.py")
    found = json.loads(done.stdout)
    assert isinstance(done.exception, UserError)
    assert (found["runs"], found["decided"]) == (0, False)
    assert "nothing was run" in found["error"]
    assert "train.py:10  host-read: no rewrite is known" in found["notes"]


def test_the_line_that_is_named_has_none(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = verify(monkeypatch, project, "--line=train.py:10", "train.py")
    assert isinstance(done.exception, UserError)
    assert "there is no fix to try in train.py at train.py:10" in done.exception.message
    assert not (project / "ran").exists()


def waits_at(path: Path, line: int) -> Trace:
    """Steps of a launch and a wait for it, at that line of a library."""
    host, queue, events, now = Lane(1, 1), Lane(0, 7, 0), [], 0
    for step in range(6):
        told = {"place": Place(str(path), line), "caller": Place("train.py", 7)}
        events += [
            Event(Kind.CALL, "cudaLaunchKernel", host, now, COLUMN, correlation=step + 1, **told),
            Event(Kind.KERNEL, "k", queue, now + COLUMN, 5 * COLUMN, correlation=step + 1),
            Event(Kind.READ, "item", host, now + 2 * COLUMN, 5 * COLUMN, **told),
            Event(Kind.CALL, "cudaStreamSynchronize", host, now + 2 * COLUMN, 5 * COLUMN, flags=Flag.BLOCKING, **told),
            Event(Kind.STEP, f"ProfilerStep#{step}", host, now, 9 * COLUMN),
        ]
        now += 9 * COLUMN
    return Trace.of(events)


def test_lines_of_libraries_that_waited_in_a_recording_are_in_the_list(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = project / "site-packages" / "trainer.py"
    library.parent.mkdir()
    library.write_text(TRAIN + TRAIN.replace("train", "evaluate"))
    kineto.save(waits_at(library, 10), project / "trace.json.gz")
    done = verify(monkeypatch, project, "--trace=trace.json.gz", "train.py")
    assert isinstance(done.exception, UserError)
    (line,) = (line for line in done.stderr.splitlines() if "it is a library's" in line)
    assert line.startswith("site-packages/trainer.py:10  host-read, unsafe: ")
    assert line.endswith("--line site-packages/trainer.py:10 tries it in a copy")


def test_a_fix_in_a_file_that_is_imported_is_worth_a_run(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "steps.py").write_text(TRAIN)
    done = verify(monkeypatch, project, "train.py")
    assert (project / "touched").exists()
    assert "nothing was run" not in done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "import importlib",
        "exec('x = 1')",
        "given = input()\nexec(open(given).read())",
        "import sys\nfor given in sys.argv:\n    given = given + '.py'\n    exec(open(given).read())",
        "run = exec",
        "import sys; sys.path.append('..')",
        "import hydra",
    ],
)
def test_where_files_may_be_run_that_no_import_names_the_program_is_run(project: Path, line: str) -> None:
    (project / "train.py").write_text(f"{RAN}{line}\n{BY_HAND}")
    assert own_files(Program(str(project / "train.py"))) is None


def test_what_is_executed_by_its_name_or_from_the_command_line_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("exec(open('configurator.py').read())  # overrides\n")
    (tmp_path / "configurator.py").write_text(CONFIGURATOR)
    for name in ("small", "large", "wide"):
        (tmp_path / f"{name}.py").write_text("size = 3\n")
    monkeypatch.chdir(tmp_path)
    found = own_files(Program("train.py", ("small.py", "--size=4")))
    assert found is not None
    assert [Path(path).name for path in found] == ["train.py", "configurator.py", "small.py"]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("import data.sets.text", ["data/__init__.py", "data/sets/text.py"]),
        ("from data import sets, other", ["data/__init__.py", "data/other.py"]),
        ("from data.other import name", ["data/__init__.py", "data/other.py", "data/sets/deep.py"]),
        ("def late():\n    from data.sets import text", ["data/__init__.py", "data/sets/text.py"]),
        ("import json, numpy, not_there.at_all", []),
    ],
)
def test_files_are_found_as_python_finds_them(tmp_path: Path, line: str, named: list[str]) -> None:
    (tmp_path / "data" / "sets").mkdir(parents=True)
    for name in ("__init__", "sets/text", "sets/deep", "unused"):
        (tmp_path / "data" / f"{name}.py").write_text("")
    (tmp_path / "data" / "other.py").write_text("from .sets.deep import name\n" if "other import" in line else "")
    (tmp_path / "train.py").write_text(line + "\n")
    found = own_files(Program(str(tmp_path / "train.py")))
    assert found is not None
    assert sorted(found[1:]) == sorted(str((tmp_path / name).resolve()) for name in named)


def test_of_a_module_the_packages_around_it_run_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("from . import start\n")
    for name in ("__main__", "start"):
        (tmp_path / "pkg" / f"{name}.py").write_text("")
    monkeypatch.chdir(tmp_path)
    found = own_files(Program("pkg", module=True))
    assert found is not None
    assert [Path(path).name for path in found] == ["__main__.py", "__init__.py", "start.py"]
    assert own_files(Program("json.tool", module=True)) is None  # none of one's own
