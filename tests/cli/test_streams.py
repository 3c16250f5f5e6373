"""What a command prints to: pipes that are closed, disks that are full, terminals that know few signs."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest
from linter.conftest import READS
from warm import Python

SHOWN = [
    ("lint", "."),
    ("lint", "--format", "json", "."),
    ("report", "run.pt.trace.json.gz"),
    ("report", "--format", "json", "run.pt.trace.json.gz"),
    ("ranks", "run.pt.trace.json.gz"),
    ("diff", "run.pt.trace.json.gz", "run.pt.trace.json.gz"),
    ("roofline", "--bandwidth", "100", "--flops", "10", "run.pt.trace.json.gz"),
    ("explain", "--all"),
]


@pytest.fixture
def here(folder):
    (folder / "train.py").write_text(READS)
    return folder


def run(*args: str, **env: str) -> "subprocess.CompletedProcess[bytes]":
    command, pipe = [sys.executable, "-m", "syncscope", *args], subprocess.PIPE
    own = {**os.environ, **env}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=own, timeout=300)
    assert b"Traceback" not in done.stderr
    return done


@pytest.fixture
def forks(forked: Python) -> "Callable[..., subprocess.CompletedProcess[str]]":
    """The same of a fork, whose streams are made before: where it is not their making that is asked for."""

    def ran(*args: str, out: BinaryIO | None = None, encoding: str = "utf-8", **env: str):
        made = f"import sys; sys.stdout.reconfigure(encoding={encoding!r}, errors='strict')"
        given = {} if out is None else {"out": out}
        done = forked(
            "-c", f"{made}; from syncscope.cli import main; main()", *args, env=os.environ | env, ours=True, **given
        )
        assert "Traceback" not in done.stderr
        return done

    return ran


@pytest.mark.parametrize(
    "args", [*SHOWN[:-1], pytest.param(SHOWN[-1], marks=pytest.mark.slow)], ids=map(" ".join, SHOWN)
)
def test_a_reader_that_has_gone_is_no_finding_and_no_bug(here, forks, args):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        done = forks(*args, out=pipe)
    assert done.returncode == 141
    assert "rror" not in done.stderr


def test_nor_is_it_as_a_process_ends_by_itself(here):
    """What is left to be flushed then is one more chance to complain."""
    command = f"set -o pipefail; {sys.executable} -m syncscope lint --format json . | exec true"
    done = subprocess.run(["bash", "-c", f"sleep 0.1; {command}"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 141
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("args", SHOWN[:3:2], ids=" ".join)
def test_a_full_disk_is_said(here, forks, args):
    with open("/dev/full", "wb") as full:
        done = forks(*args, out=full)
    assert done.returncode == 2
    assert "error: the output cannot be written: No space left on device\n" in done.stderr


@pytest.mark.parametrize("args", SHOWN[:7:2], ids=" ".join)
def test_signs_that_cannot_be_shown_are_replaced(here, forks, args):
    (here / "größe.py").write_text("# 日本\n" + READS)
    done = forks(*args, encoding="ascii")
    assert done.returncode == (1 if args[0] == "lint" else 0)
    assert done.stdout


def test_so_they_are_where_the_environment_names_an_encoding(here):
    (here / "größe.py").write_text(READS)
    done = run("lint", ".", PYTHONIOENCODING="ascii")
    assert done.returncode == 1
    assert done.stdout


def test_a_closed_standard_output_swallows_all(here):
    shell = f"{sys.executable} -m syncscope lint --exit-zero . >&-"
    done = subprocess.run(shell, shell=True, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "")
    assert "2 findings in 2 of 2 files" in done.stderr


@pytest.mark.parametrize(
    ("shell", "code"),
    [
        ("lint --exit-zero - <&-", 0),
        ("report - <&-", 2),
        ("lint . 2>&- >/dev/null", 1),
        ("nope 2>&-", 2),
        ("nope 2>/dev/full", 2),
        ("lint . 2>/dev/full >/dev/null", 2),
    ],
)
def test_streams_that_are_not_there(here, shell, code):
    done = subprocess.run(
        f"{sys.executable} -m syncscope {shell}", shell=True, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == code
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("args", [("lint", "."), ("lnit",)], ids=" ".join)
def test_no_colours_where_they_are_not_wanted(here, forks, args):
    asked = {"FORCE_COLOR": "1", "TERM": "xterm", "NO_COLOR": ""}
    forced, *plain = (forks(*args, **asked | env) for env in ({}, {"NO_COLOR": "1"}, {"TERM": "dumb"}))
    assert "\x1b[" in forced.stdout + forced.stderr
    for done in plain:
        assert "\x1b[" not in done.stdout + done.stderr


def test_a_folder_that_is_gone(here, monkeypatch):
    (here / "gone").mkdir()
    monkeypatch.chdir(here / "gone")
    (here / "gone").rmdir()
    for args in (("lint",), ("explain", "nms")):
        done = run(*args)
        assert done.returncode == 2
        assert b"error: the folder that you are in is gone\n hint: " in done.stderr


def test_a_bug_of_ours_is_no_finding(here):
    (here / "sitecustomize.py").write_text(
        "import syncscope.linter.gathering as s\ndef gather(*a, **k): raise RuntimeError('?')\ns.gather = gather\n"
    )
    command = [sys.executable, "-m", "syncscope", "lint", "."]
    path = os.pathsep.join([str(here), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, timeout=300)
    assert done.returncode == 2
    assert "RuntimeError: ?" in done.stderr
    assert done.stderr.endswith("this is a bug of syncscope: please report it with the lines above\n")


SLOW = """
import os, time, syncscope
until = time.monotonic() + (0.8 if os.environ["TERM"] == "dumb" else 300)
for _ in syncscope.steps(range(10**9)):
    time.sleep(0.02)
    if os.path.exists("shown") or time.monotonic() > until: break
"""


@pytest.mark.parametrize(("term", "is_live"), [("xterm", True), ("dumb", False)])
def test_a_line_is_written_over_only_where_the_terminal_can(here, term, is_live, start):
    pty = pytest.importorskip("pty")
    (here / "slow.py").write_text(SLOW)
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "syncscope", "run", "slow.py"]
    done = start(command, stdin=subprocess.DEVNULL, stdout=child, stderr=child, env={**os.environ, "TERM": term})
    os.close(child)
    said = b""
    while True:
        try:
            piece = os.read(parent, 4096)
        except OSError:  # Linux, where nobody holds the other end any more
            break
        if not piece:
            break
        said += piece
        if b"syncscope: step" in said:
            (here / "shown").touch()
    os.close(parent)
    assert done.wait(300) == 0
    assert (b"syncscope: step" in said) == is_live
    assert (b"\x1b[K" in said) == is_live


@pytest.mark.parametrize(
    "closed", [*(pytest.param(some, marks=pytest.mark.slow) for some in ((0,), (1, 2))), (2,), (0, 1, 2)], ids=str
)
def test_a_program_runs_where_streams_are_closed_and_its_files_are_its_own(tmp_path, closed):
    (tmp_path / "program.py").write_text("file = open('written', 'w')\nprint('on its stream')\nfile.write('its own')\n")
    close = "".join(f" {number}>&-" for number in closed)
    command = f"exec {sys.executable} -m syncscope run program.py{close}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, timeout=300)
    assert done.returncode == 0
    assert (tmp_path / "written").read_text() == "its own"
    assert done.stdout == (b"" if 1 in closed else b"on its stream\n")


@pytest.mark.parametrize("closed", [pytest.param((2,), marks=pytest.mark.slow), (1, 2)], ids=str)
def test_what_a_command_writes_is_whole_where_streams_are_closed(here, closed):
    close = "".join(f" {number}>&-" for number in closed)
    done = subprocess.run(
        ["bash", "-c", f"exec {sys.executable} -m syncscope lint --no-such-option . {close}"], cwd=here, timeout=300
    )
    assert done.returncode == 2
    command = f"exec {sys.executable} -m syncscope lint -o out.json . {close}"
    assert subprocess.run(["bash", "-c", command], cwd=here, timeout=300).returncode == 1
    assert (here / "out.json").read_text().startswith("[")
