"""Whatever a program starts, and however it or `syncscope verify` ends: no process is left, and no file is another."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from syncscope.verify import clearing
from syncscope.verify.processes import Processes
from syncscope.verify.request import Program, Request

pytest.importorskip("torch")
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt what its descendants leave")

TRAIN = """
import multiprocessing, os, sys, time, torch

def sleep():
    time.sleep(1000)

if os.fork() == 0:  # as a daemon does it
    os.setsid()
    if os.fork() == 0:
        sleep()
    os._exit(0)
if __name__ == "__main__":
    multiprocessing.get_context("fork").Process(target=sleep, daemon=True).start()
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(int(sys.argv[1])):
        model(torch.ones(2)).sum().backward()
        optimizer.step()
        torch.save(model.state_dict(), "checkpoint.pt")
        with open("log", "a") as file:
            file.write("step")
        time.sleep(0.01)
"""


WORKERS = """
import torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for (batch,) in DataLoader(TensorDataset(torch.ones(400, 2)), batch_size=4, num_workers=2):
    model(batch).sum().backward()
    optimizer.step()
"""


def running_in(folder: Path) -> dict[int, str]:
    """The processes whose folder that is, and their command lines."""
    found = {}
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if link.readlink() == folder and link.parent.name != str(os.getpid()):
                found[int(link.parent.name)] = (link.parent / "cmdline").read_text()
        except OSError:
            continue
    return {process: line for process, line in found.items() if line}  # of a zombie nothing is left but its name


def is_as_it_was(folder: Path) -> bool:
    return sorted(os.listdir(folder)) == ["checkpoint.pt", "train.py"] and (
        (folder / "checkpoint.pt").read_text() == "of yesterday"
    )


@linux
def test_a_daemon_that_a_program_starts_ends_with_the_run(project: Path) -> None:
    with Processes(time.monotonic() + 500) as runs:
        for _ in range(2):
            runs.run(Request("time", Program("train.py", ("20",)), "", steps=15))
            assert sum("serve()" in line for line in running_in(project).values()) == 1  # the server alone
    assert running_in(project) == {}
    assert is_as_it_was(project)


@linux
@pytest.mark.usefixtures("imported_once")
def test_what_a_loaders_workers_keep_in_the_temporary_folder_goes_with_the_run(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")  # of verify's own: below a long name no socket may lie
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (project / "train.py").write_text(WORKERS)
    with Processes(time.monotonic() + 500) as runs:
        runs.run(Request("time", Program("train.py", ()), "", steps=15))
    assert not any(tmp_path.glob("pymp-*"))


def test_whose_parent_ended_between_two_lines_of_the_look_is_found(tmp_path: Path, monkeypatch) -> None:
    for process, state, parent in ((10, "T", 1), (11, "Z", 10), (12, "S", 11), (13, "S", 1)):
        (tmp_path / str(process)).mkdir()
        (tmp_path / str(process) / "stat").write_text(f"{process} (a) name)) {state} {parent} 0 0")
    monkeypatch.setattr(clearing, "PROC", tmp_path)
    assert clearing.below(10) == [12]


@linux
@pytest.mark.parametrize(  # of which the most is left; in a step it is as good as killed where what clears up comes late
    "after", [*(pytest.param(one, marks=pytest.mark.slow) for one in ("import", "step")), "steps side by side"]
)
def test_nothing_is_left_where_verify_itself_is_killed(project: Path, after: str, tmp_path: Path) -> None:
    (project / "after.py").write_text(TRAIN)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = [
        sys.executable,
        "-m",
        "syncscope",
        "verify",
        "--budget=10m",
        "--steps=30",
        "--apart",
        "train.py",
        "after.py",
        "1000",
    ]
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    verify = subprocess.Popen(command, cwd=project, env=os.environ | {"TMPDIR": str(temporary)}, **streams)
    seen = {
        "import": lambda: any("serve()" in line for line in running_in(project).values()),
        "step": lambda: (project / "log").exists(),
        "steps side by side": lambda: any(temporary.glob("*/*/2")),
    }[after]
    until(seen)
    verify.send_signal(signal.SIGKILL)
    verify.wait()
    until(lambda: running_in(project) == {})
    (project / "after.py").unlink()
    assert is_as_it_was(project)
    assert not any(temporary.glob("syncscope-verify-*"))


@linux
@pytest.mark.slow  # the same clears up as where `verify` is killed, only later
def test_nothing_is_left_where_what_clears_up_comes_late(project: Path) -> None:
    """The fork server ends before: nobody hears any more what it has to say."""
    (project / "train.py").write_text(TRAIN.replace("time.sleep(0.01)", ""))
    command = [sys.executable, "-m", "syncscope", "verify", "--steps=200", "train.py", "train.py", "1000"]
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    verify = subprocess.Popen(command, cwd=project, **streams)
    until((project / "log").exists)
    (survivor,) = (process for process, line in running_in(project).items() if "survive(" in line)
    os.kill(survivor, signal.SIGSTOP)
    verify.send_signal(signal.SIGKILL)
    verify.wait()
    until(lambda: list(running_in(project)) == [survivor])
    os.kill(survivor, signal.SIGCONT)
    until(lambda: running_in(project) == {})
    assert is_as_it_was(project)


@linux
@pytest.mark.usefixtures("no_torch")
def test_whoever_waits_for_a_turn_that_nobody_can_give_ends(project: Path, tmp_path: Path) -> None:
    (project / "train.py").write_text(f"open({str(tmp_path)!r} + '/began', 'w'); import time; time.sleep(1000)")
    requests = []
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        asked = Request("time", Program("train.py", ()), str(tmp_path / str(number)), steps=15, beside=True)
        requests.append(replace(asked, journal=str(tmp_path / "journal")).said())
    command = [sys.executable, "-c", "from syncscope.verify.trial import serve; serve()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stdout.readline().startswith("ready ")
        server.stdin.write(json.dumps(requests) + "\n")
        server.stdin.flush()
        first, *_ = (int(child) for child in server.stdout.readline().split())
        until((tmp_path / "began").exists)
        server.kill()
    until(lambda: list(running_in(project)) == [first])
    os.kill(first, signal.SIGKILL)


def test_what_a_process_was_about_to_fork_is_there_when_it_is_looked_for(tmp_path: Path, monkeypatch) -> None:
    """It is told to stop in the middle of a fork, which it carries out first."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"]) as process:
        stat, seen = tmp_path / str(process.pid) / "stat", []
        stat.parent.mkdir()
        stat.write_text(f"{process.pid} (forks) R 1 0 0")
        monkeypatch.setattr(clearing, "PROC", tmp_path)
        monkeypatch.setattr(clearing, "end_below", lambda _: seen.append(stat.read_text()))
        after = tmp_path / "stat"
        after.write_text(f"{process.pid} (forks) T 1 0 0")
        stopped = threading.Timer(0.3, after.replace, [stat])
        stopped.start()
        clearing.end(process.pid)
        stopped.join()
    assert seen == [f"{process.pid} (forks) T 1 0 0"]


def until(holds: object) -> None:
    end = time.monotonic() + 500
    assert callable(holds)
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
