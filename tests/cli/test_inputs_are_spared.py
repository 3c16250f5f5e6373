"""No command writes over what it reads, nor over any recording."""

import json
import os
from pathlib import Path

import pytest
from cli.recorded import outcome, ranks, recording
from click.testing import CliRunner

import syncscope
from syncscope import kineto
from syncscope.cli import commands
from syncscope.errors import UserError


@pytest.fixture
def traces(folder: Path) -> Path:
    """Two ranks of a job in `job`, two recordings in `runs`."""
    ranks(folder / "job")
    for name in "ab":
        kineto.save(recording("train.py"), folder / "runs" / f"{name}.json")
    return folder


def kept(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "cache" not in path.parts}


@pytest.mark.parametrize(
    "line",
    [
        "report runs/a.json -o runs/a.json",
        "report runs/a.json -o linked.json",
        "report runs/a.json --format json -o hard.json",
        "report runs/a.json --format html -o runs/../runs/a.json",
        "report runs --format json -o runs/",
        "report runs -o runs/b.json",
        "report job --format html -o job/worker1.pt.trace.json",
        "diff runs/a.json runs/b.json -o runs/a.json",
        "diff runs runs --format html -o runs/b.json",
        "ranks job -o job/worker0.pt.trace.json",
        "lint project --format json -o project/train.py",
        "lint project --write-baseline project/train.py",
        "lint project --trace runs/a.json -o runs/a.json",
        "verify --trace runs/a.json -o runs/a.json project/train.py",
    ],
)
def test_an_output_that_is_an_input_is_refused_and_nothing_is_written(traces: Path, line: str) -> None:
    Path("linked.json").symlink_to("runs/a.json")
    os.link("runs/a.json", "hard.json")
    before = kept(traces)
    # An error of ours reaches the caller, who prints it and exits with 2: `test_the_command_exits_with_2`.
    error = CliRunner().invoke(commands, line.split()).exception
    assert isinstance(error, UserError)
    assert "read here, and is not written over" in error.message or "is a recording" in error.message
    assert kept(traces) == before


@pytest.mark.parametrize(
    "line",
    [
        "report runs/a.json -o runs/b.json/one.html",
        "diff runs/a.json runs/a.json -o runs/b.json/one.html",
        "ranks job -o runs/b.json/folder/one.html",
        "lint project -o runs/b.json/one.sarif",
        "lint project --write-baseline runs/b.json/one.json",
        "verify -o runs/b.json/one.patch project/train.py",
    ],
)
def test_where_no_file_can_be_it_is_said_before_anything_is_done(
    traces: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("syncscope.files.whole", None)  # nobody comes as far
    error = CliRunner().invoke(commands, line.split()).exception
    assert isinstance(error, UserError)
    assert "cannot be written: runs/b.json is no folder" in error.message


def test_folders_that_are_not_there_are_made(traces: Path) -> None:
    for line in ("lint project -o new/a/one.json", "lint project --write-baseline new/b/known.json"):
        CliRunner().invoke(commands, line.split())
        assert Path(line.split()[-1]).is_file()


def test_the_command_exits_with_2(traces: Path) -> None:
    code, out, err = outcome("runs/a.json", "-o", "runs/a.json")
    assert (code, out) == (2, "")
    assert "runs/a.json is read here, and is not written over" in err


def test_a_recording_that_is_not_read_is_not_written_over_either(traces: Path) -> None:
    before = kept(traces)
    code, _, err = outcome("runs/a.json", "-o", "runs/b.json")
    assert code == 2
    assert "runs/b.json is a recording, and is not written over" in err
    assert kept(traces) == before


def test_a_report_takes_the_place_of_an_older_one(traces: Path) -> None:
    for _ in range(2):
        assert outcome("runs/a.json", "-o", "report.json")[0] == 0
        assert outcome("runs", "--format", "json", "-o", "reports/")[0] == 0
    assert json.loads(Path("report.json").read_text())["name"] == "runs/a.json"


def test_a_recording_is_written_over_no_file_that_is_none(folder: Path) -> None:
    Path("config.json").write_text('{"epochs": 3}')
    for there in ("config.json", "project/train.py"):
        with pytest.raises(UserError, match=there):
            syncscope.trace(there)
    assert Path("config.json").read_text() == '{"epochs": 3}'
