"""An option of ours behind the program: it goes there, and who wrote it is told."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from syncscope.cli import run, verify

pytest.importorskip("torch")
SCRIPT = """
import argparse, sys
parser = argparse.ArgumentParser()
parser.add_argument("--seed")
if parser.parse_args().seed:
    sys.exit(2)
"""


@pytest.mark.parametrize(
    ("command", "argument", "told"),
    [("run", "--device=cpu", True), ("run", "--lr=3", False), ("verify", "--device=cpu", True)],
)
def test_who_writes_an_option_behind_the_program_is_told(
    command: str, argument: str, told: bool, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "torch.py").write_text(
        "raise ImportError"
    )  # it needs none, and to import it takes longer than all else
    started = [sys.executable, "-m", "syncscope", command, "train.py", argument]
    own = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(started, cwd=tmp_path, env=own, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert f"error: unrecognized arguments: {argument}" in done.stderr
    said = "--device=cpu went to the program: options of syncscope stand before it"
    assert (said in done.stderr) == told


@pytest.mark.parametrize("command", [run.command, verify.command], ids=["run", "verify"])
@pytest.mark.parametrize(
    ("words", "device", "given"),
    [
        (["--device", "ocl", "-m", "pkg.train", "--device", "cuda"], "ocl", ["--device", "cuda"]),
        (["-m", "pkg.train", "-o", "here", "--help"], None, ["-o", "here", "--help"]),
        (["-mpkg.train", "-m", "--", "--quiet"], None, ["-m", "--", "--quiet"]),
        (["-o", "-m", "-m", "pkg.train"], None, []),
    ],
)
def test_what_follows_a_module_is_the_programs(
    words: list[str], device: str | None, given: list[str], command: click.Command
) -> None:
    told = command.make_context("syncscope", words).params
    assert (told["module"], told["device"], told["arguments"]) == ("pkg.train", device, tuple(given))


@pytest.mark.parametrize("command", ["run", "verify"])
def test_an_option_that_is_none_is_not_taken_for_a_script(command: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    started = [sys.executable, "-m", "syncscope", command, "--devise=cpu", "train.py"]
    done = subprocess.run(started, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert f"error: {command} has no option --devise\n hint: did you mean '--device'?\n" in done.stderr
