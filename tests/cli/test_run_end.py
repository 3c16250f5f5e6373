"""`syncscope run`: what fails after the program has ended is said in one line, and the exit code stays the program's."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from syncscope import kineto
from syncscope.cli import _run_end
from syncscope.model.trace import Event, Kind, Lane, Trace

PROGRAM = """
import atexit, glob, os, signal, sys
import syncscope, syncscope.cli._run_end, syncscope.exporters.tensorboard, syncscope.tracers.process_recording

def broken(*args, **kwargs):
    if "interrupt" in sys.argv: raise KeyboardInterrupt
    raise RuntimeError("no such luck")

if "table" in sys.argv: syncscope.cli._run_end._show = broken
if "files" in sys.argv: syncscope.exporters.tensorboard.save = broken
if "trace" in sys.argv: syncscope.tracers.process_recording.assemble = broken
for _ in syncscope.steps(range(3)):
    pass
print("done", flush=True)
if "_exit" in sys.argv: os._exit(6)
if "kill" in sys.argv:
    for file in glob.glob("out/syncscope-run-*/*"):
        open(file, "wb").write(b"nonsense")
    os.kill(os.getpid(), signal.SIGKILL)
sys.exit(0 if "interrupt" in sys.argv else int(sys.argv[1]))
"""


def run(folder: Path, *arguments: str, options: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
    (folder / "train.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "syncscope", "run", "-o", "out", *options, "train.py", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300, check=False)
    assert "Traceback" not in done.stderr
    assert done.stdout == "done\n"
    return done


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        (
            ["--no-cuda", "--steps", "5"],
            "`--no-cuda` keeps it from cuda; without it: syncscope run --device ocl dqn.py --steps 5",
        ),
        (
            ["--steps", "5"],
            "where it has an option for that: syncscope run --device ocl dqn.py --steps 5 --device cuda",
        ),
    ],
)
def test_an_option_that_keeps_a_program_from_cuda_is_named(capsys, given, hint):
    host = Trace.of([Event(Kind.STEP, "ProfilerStep#0", Lane(1, 1), 0, 10)])
    _run_end._show(host, _run_end.made_of("dqn.py", given, False, "ocl"))
    assert hint in capsys.readouterr().err


def test_a_table_that_cannot_be_made(tmp_path):
    done = run(tmp_path, "5", "table")
    assert done.returncode == 5
    (file,) = (tmp_path / "out").glob("*/*.pt.trace.json.gz")
    said = f"syncscope: the report could not be made: RuntimeError: no such luck; the recording lies in {file}\n"
    assert done.stderr == said


@pytest.mark.parametrize(("how", "code"), [("3", 3), pytest.param("_exit", 6, marks=pytest.mark.slow)])
def test_a_recording_that_cannot_be_finished_is_found_by_whoever_is_left(tmp_path, how, code):
    done = run(tmp_path, how, "trace", options=("--quiet",))
    assert done.returncode == code
    assert "syncscope: the recording could not be finished: RuntimeError: no such luck\n" in done.stderr
    assert len(list((tmp_path / "out").glob("train/*.pt.trace.json.gz"))) == 1
    assert not list((tmp_path / "out").glob("syncscope-run-*"))


def test_a_schedule_that_ends_while_the_program_runs_does_not_end_it(tmp_path):
    done = run(tmp_path, "4", "trace", options=("--quiet", "--active", "1"))
    assert done.returncode == 4
    assert done.stderr.count("the recording could not be finished") == 1


@pytest.mark.parametrize(("how", "code"), [pytest.param("3", 3, marks=pytest.mark.slow), ("interrupt", 130)])
def test_files_that_cannot_be_written_are_written_by_whoever_is_left(tmp_path, how, code):
    done = run(tmp_path, how, "files", options=("--quiet",))
    assert done.returncode == code
    assert "no such luck" not in done.stderr  # they are there now
    (file,) = (tmp_path / "out").glob("train/*.pt.trace.json.gz")
    assert int((kineto.read(file).kind == Kind.STEP).sum()) == 3
    assert not list((tmp_path / "out").glob("syncscope-run-*"))


def test_records_that_cannot_be_read_are_left_where_they_are(tmp_path):
    done = run(tmp_path, "kill")
    assert done.returncode == -signal.SIGKILL
    (folder,) = (tmp_path / "out").glob("syncscope-run-*")
    assert list(folder.iterdir())
    assert "syncscope: what was recorded cannot be read: " in done.stderr
    assert done.stderr.endswith(f"; the recording lies in {folder}\n")


def test_a_reader_of_the_report_that_goes_away(tmp_path, start):
    (tmp_path / "train.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "syncscope", "run", "-o", "out", "train.py", "7"]
    child = start(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=tmp_path)
    child.stderr.close()
    assert child.wait(300) == 7


@pytest.mark.parametrize("there", [False, True])
def test_no_empty_folder_is_left_where_nothing_was_recorded(tmp_path, there):
    (tmp_path / "train.py").write_text("print('done')\n")
    if there:
        (tmp_path / "out").mkdir()
    command = [sys.executable, "-m", "syncscope", "run", "-o", "out", "train.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False)
    assert done.returncode == 0
    assert "nothing to record" in done.stderr or "before the first recorded step" in done.stderr
    assert (tmp_path / "out").exists() == there, "what was there stays"
