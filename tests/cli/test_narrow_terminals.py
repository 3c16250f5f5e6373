"""In a terminal with little room no word is cut: prose goes on below itself, and a path keeps the file and the line."""

import re
from dataclasses import replace
from unittest import mock

import pytest
from cli.recorded import SOURCE, recording
from click.testing import CliRunner

from syncscope import kineto
from syncscope.cli import commands

FOLDER = "a_rather_long_project_name/experiments/of_last_summer/models"
FILE = "segmentation_training_loop.py"
RUN = "runs/one_rather_long_name_of_a_recording.json.gz"
COMMANDS = (
    f"report {RUN}",
    "report runs",
    f"report --all {RUN}",
    "ranks job",
    f"diff {RUN} runs/other.json.gz",
    "diff job job",
)
SAID_THERE = set("no room for a wider terminal has them shown".split())


@pytest.fixture
def said(tmp_path, monkeypatch):
    """What a command prints in a terminal of so many columns; tables ask for no more than their number."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYNCSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    for folder in (FOLDER, "runs", "job"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / FOLDER / FILE).write_text(SOURCE)
    trace = recording(f"{FOLDER}/{FILE}")
    for name in (RUN, "runs/other.json.gz"):
        kineto.save(trace, tmp_path / name)
    for rank in range(3):
        meta = trace.meta | {"rank": rank, "world_size": 3}
        kineto.save(replace(trace, meta=meta), tmp_path / f"job/host_{rank}.pt.trace.json")

    def invoke(command: str, width: int) -> str:
        runner = CliRunner(env={"COLUMNS": str(width), "NO_COLOR": "1"})
        with mock.patch("click.testing._NamedTextIOWrapper.isatty", return_value=command.startswith("lint")):
            return runner.invoke(commands, command.split()).output

    return invoke


@pytest.mark.parametrize("width", [80, 60])
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_shortened_is_a_path_and_at_its_left(said, command, width):
    out = said(command, width)
    assert f"{FILE[-8:]}:7" in out
    assert max(map(len, out.splitlines())) <= width
    assert not re.findall(r"\w…", out)
    words = SAID_THERE.union(re.findall(r"[a-z]+", said(command, 140)))
    cut = [word for word in re.findall(r"(?<![\w…/.])[a-z]{4,}(?![\w/.:…])", out) if word not in words]
    assert not cut


@pytest.mark.parametrize("width", [80, 60])
def test_a_finding_breaks_no_word_and_its_code_is_cut_around_the_arrows(said, tmp_path, width):
    long = SOURCE.replace("loss.item()", "loss.item() + " + " + ".join(f"number_{n}" for n in range(20)))
    (tmp_path / FOLDER / FILE).write_text(long)
    out = said("lint --isolated --no-cache .", width)
    whole = said("lint --isolated --no-cache .", 400)
    code = next(line for line in out.splitlines() if " | " in line)
    assert len(code) <= width
    assert "loss.item()" in code
    assert code.endswith("...")
    told = [line for line in out.splitlines() if line is not code]
    assert " ".join(" ".join(told).split()[:12]) == " ".join(whole.split()[:12])
    assert all(len(line) <= width for line in told if "`" not in line and FILE not in line)


def test_a_command_to_be_pasted_stands_in_one_line(said):
    out = said("lint --isolated --no-cache .", 60)
    assert f"`syncscope lint --diff --isolated {FOLDER}/{FILE}`" in out


def test_lines_that_go_to_no_terminal_are_whole(said):
    out = CliRunner(env={"COLUMNS": "60"}).invoke(commands, ["lint", "--isolated", "--no-cache", "."]).output
    assert (
        f"{FOLDER}/{FILE}:7:18: warning: `loss.item()` waits for the device on every pass of the loop [host-read]"
        in out
    )
