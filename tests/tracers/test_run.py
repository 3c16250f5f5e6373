"""`syncscope run`: programs as people write them, in processes of their own."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tracers.programs import recorded, run, run_in, steps
from warm import Python

import syncscope
from syncscope import kineto
from syncscope.model.trace import Kind
from syncscope.tracers import record_file

torch = pytest.importorskip("torch")

CUDA = """
import sys
import torch

def main():
    assert __name__ == "__main__"
    assert torch.cuda.is_available() and 0 < torch.cuda.get_device_properties(0).total_memory == torch.cuda.mem_get_info()[1]
    device = torch.device("cuda:0")
    model = torch.nn.DataParallel(torch.nn.Linear(4, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(4):
        x = torch.randn(8, 4).cuda(non_blocking=True)
        y = torch.zeros(8, 1, device="cuda")
        loss = ((model(x) - y) * (model(x) - y)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss.item() > 1e6:
            print("large")
    torch.cuda.synchronize()
    print(x.device.type, sys.argv[1:], isinstance(device, torch.device))

main()
"""
KILLED = """
import os, signal, time, syncscope
with syncscope.trace() as trace:
    for _ in range(4):
        time.sleep(0.4)
        trace.step()
    os.kill(os.getpid(), signal.SIGTERM)
"""
PLAIN = """
import atexit, os, signal, sys, time
import syncscope
atexit.register(print, "at exit")
for _ in syncscope.steps(range(3)):
    pass
what = sys.argv[1]
print("running", flush=True)
if what == "exit": sys.exit(5)
if what == "text": sys.exit("in words")
if what == "raise": raise ValueError("the program's own")
if what == "cuda": raise AssertionError("Torch not compiled with CUDA enabled")
if what == "kill": os.kill(os.getpid(), signal.SIGKILL)
if what == "_exit": os._exit(6)
if what == "sleep":
    for _ in syncscope.steps(range(6000)): time.sleep(0.01)
"""


@pytest.mark.parametrize("device", ["ocl", "cpu"])
def test_a_script_that_asks_for_cuda(tmp_path: Path, device: str, forked: Python) -> None:
    (tmp_path / "train.py").write_text(CUDA)
    arguments = ("--whole", "--device", device, "train.py", "--lr", "-m")
    if device == "ocl":  # in a process of its own
        pytest.importorskip("pyopencl")
        done = run(*arguments, folder=tmp_path)
    else:
        done = run_in(forked, *arguments, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{device} ['--lr', '-m'] True\n"
    trace = recorded(tmp_path)
    assert int((trace.kind == Kind.STEP).sum()) == 4
    reads = [(e.name, e.place.line) for e in trace if e.kind == Kind.READ and e.name == "item" and e.place]
    assert reads == [("item", 18)] * 4
    assert "train.py:18" in done.stderr
    assert "item" in done.stderr
    found = [e for e in trace if e.kind == Kind.STEP]
    optimizers = [e for e in trace if e.name.startswith("Optimizer.step")]
    apart = [step.end - region.end for step, region in zip(found, optimizers, strict=True)]
    apart += [after.start - step.end for step, after in pairwise(found)]
    nearly = 2  # ns, which are left between them for viewers that add floats
    assert max(map(abs, apart)) <= nearly, "the marks cut no region in two, and steps meet"


def test_a_module_and_a_schedule(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "train.py").write_text(PLAIN)
    done = run("--quiet", "--wait", "1", "--active", "1", "-m", "package.train", "none", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "running\nat exit\n"), done.stderr
    assert [e.name for e in recorded(tmp_path) if e.kind == Kind.STEP] == ["ProfilerStep#1"]


@pytest.mark.parametrize(
    ("what", "code", "out", "error"),
    [
        pytest.param("none", 0, "running\nat exit\n", "", marks=pytest.mark.slow),
        ("exit", 5, "running\nat exit\n", ""),
        pytest.param("text", 1, "running\nat exit\n", "in words", marks=pytest.mark.slow),
        ("raise", 1, "running\nat exit\n", "ValueError: the program's own"),
        ("cuda", 1, "running\nat exit\n", "hint: torch finds no GPU here: --device ocl"),
        ("_exit", 6, "running\n", ""),
        ("kill", -signal.SIGKILL, "running\n", ""),
    ],
)
def test_the_programs_own_end(tmp_path: Path, what: str, code: int, out: str, error: str) -> None:
    (tmp_path / "train.py").write_text(PLAIN)
    done = run("--quiet", "train.py", what, folder=tmp_path)
    assert (done.returncode, done.stdout) == (code, out), done.stderr
    assert error in done.stderr
    assert "syncscope/tracers/program.py" not in done.stderr
    if what != "kill":  # steps rest in memory for at most a second: a killed program may take these with it
        assert steps(tmp_path) == 3
    assert not list((tmp_path / "out").glob("syncscope-run-*"))


def test_what_a_killed_program_had_recorded_is_offered_by_the_next_command(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(KILLED)
    own = {**os.environ, "TMPDIR": str(tmp_path)}

    def command(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, *words], capture_output=True, text=True, cwd=tmp_path, env=own, check=False
        )

    assert command("train.py").returncode == -signal.SIGTERM
    said = command("-m", "syncscope", "report", "none.json").stderr
    assert "a program was killed while it recorded" in said
    (file,) = re.findall(r"syncscope report (.*\.records)$", said, re.MULTILINE)
    shown = command("-m", "syncscope", "report", file)
    assert shown.returncode == 0, shown.stderr
    assert "killed" not in shown.stderr
    assert re.search(r"steps +[1-4] ", shown.stdout), shown.stdout  # those that ended a second before are on the disk
    assert "the program ended without ending its recording" in shown.stdout
    for content in (b"", b"nonsense", b"[1]", b'{"pid": 1}', Path(file).read_bytes()[:20]):
        (tmp_path / "cut.records").write_bytes(content)
        with pytest.raises(syncscope.UserError, match=r"cut\.records"):
            syncscope.report(tmp_path / "cut.records")
    (tmp_path / "cut.records").unlink()
    os.utime(file, (0, 0))  # of long ago: `syncscope doctor` names it, no report does
    assert "killed" not in command("-m", "syncscope", "report", "none.json").stderr


@pytest.mark.parametrize(
    ("number", "group"),
    [pytest.param(signal.SIGINT, False, marks=pytest.mark.slow), (signal.SIGINT, True), (signal.SIGTERM, False)],
    ids=["SIGINT", "SIGINT to both", "SIGTERM"],
)
def test_an_interrupted_program_ends_as_without_us_and_is_recorded(
    tmp_path: Path, number: int, group: bool, start: Any
) -> None:
    (tmp_path / "train.py").write_text(PLAIN)
    command = [sys.executable, "-m", "syncscope", "run", "-o", "out", "--whole", "--quiet", "train.py", "sleep"]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = start(command, **pipes, text=True, cwd=tmp_path)
    assert child.stdout.readline() == "running\n"
    (records,) = (tmp_path / "out").glob("syncscope-run-*")
    made, end = record_file.HEADER + 20 * record_file.RECORD.itemsize, time.monotonic() + 300
    while (
        min(file.stat().st_size for file in records.iterdir()) < made
    ):  # what is recorded is on the disk within a second
        assert time.monotonic() < end
        time.sleep(0.05)
    if group:  # as `timeout` does, and a terminal where our standard input is a pipe
        os.killpg(child.pid, number)
    else:
        child.send_signal(number)
    child.communicate(timeout=300)
    assert child.returncode == (130 if number == signal.SIGINT else -signal.SIGTERM)
    assert steps(tmp_path) > 10
    assert list((tmp_path / "out" / "train").iterdir())


def test_who_is_interrupted_within_our_code_is_shown_the_programs_lines(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("""
import signal, syncscope
for step in syncscope.steps(map(signal.raise_signal, [signal.SIGINT])):
    print("began", step)
""")
    done = run("--device", "cpu", "train.py", folder=tmp_path)
    assert done.returncode == 130
    shown = done.stderr[done.stderr.index("Traceback") :]
    assert 'train.py", line 3' in shown
    assert str(Path(syncscope.__file__).parent) not in shown
    assert "KeyboardInterrupt" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.py",), "nowhere.py: no such script"),
        ((), "no program to run"),
        (("-o", "/proc/nowhere", "train.py"), "/proc/nowhere cannot be written"),
    ],
)
def test_what_the_user_can_mend(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    (tmp_path / "train.py").write_text(PLAIN)
    done = run(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_script_with_a_trace_of_its_own_and_workers(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("""
import multiprocessing, syncscope

def square(x):
    return x * x

if __name__ == "__main__":  # who is started imports this file, and needs no torch
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    with syncscope.trace("inner.json") as trace:
        for _ in DataLoader(TensorDataset(torch.arange(8)), 2, num_workers=1):
            trace.step()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(square, range(3)))
""")
    done = run("--quiet", "train.py", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "[0, 1, 4]\n"), done.stderr
    assert int((kineto.read(tmp_path / "inner.json").kind == Kind.STEP).sum()) == 4


def test_a_program_that_goes_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os, syncscope\nfor _ in syncscope.steps(range(2)): os.chdir('/')\n")
    done = run("--quiet", "train.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert steps(tmp_path) == 2


def test_doctor_says_what_a_recording_would_miss(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "syncscope", "doctor"], capture_output=True, text=True, check=False, env={**os.environ}
    )
    assert done.returncode in (0, 1), done.stderr
    assert "OpenCL hook" in done.stdout
    assert "would be missed:" in done.stdout
    if "OpenCL device" in done.stdout and "native" in done.stdout:
        assert "its clock is known to" in done.stdout


def test_what_libraries_say_while_python_ends_stands_after_the_table(tmp_path: Path) -> None:
    """As nanobind tells what it has leaked, and whoever registers with atexit says good-bye."""
    (tmp_path / "ends.py").write_text(
        "import atexit, os, sys, torch\n"
        "class Leaked:\n"
        "    def __del__(self, write=os.write): write(2, b'leaked 27 types')\n"
        "sys.leaked = Leaked()\n"
        "atexit.register(os.write, 2, b'good-bye')\n"
        "torch.ones(3, device='cuda').sum().item()\n"
    )
    done = run("--device", "cpu", "ends.py", "a b", folder=tmp_path)
    then = ["`syncscope lint --all --min-confidence low ends.py`", "`syncscope run --device ocl ends.py 'a b'`"]
    said = ["dry recording on the CPU: 1 sync", "ends.py:6:1  item", *then, "wrote ", "good-bye", "leaked 27 types"]
    assert [done.stderr.index(words) for words in said] == sorted(done.stderr.index(words) for words in said)


ROLLOUT = """
import torch

w = torch.nn.Parameter(torch.ones(3, device="cuda"))
optimizer = torch.optim.SGD([w], 0.1)
for step in range(14):
    if step % 4 == 0:
        for _ in range(32): w.sum().item()
    w.sum().backward()
    optimizer.step()
    w.sum().item()
"""


def test_without_a_device_syncs_are_counted_over_whole_rounds_of_all_steps(tmp_path: Path, forked: Python) -> None:
    """A rollout before every fourth step was told as 6.4 or 7.11 a step, and what comes once in each as 1.11."""
    (tmp_path / "rollout.py").write_text(ROLLOUT)
    said = run_in(forked, "--device", "cpu", "rollout.py", folder=tmp_path).stderr
    assert "108 syncs in 12 steps (3 to 14) would make the host wait" in said
    assert "rollout.py:8:29  item  8 per step" in said
    assert "rollout.py:11:5  item  1 per step" in said
    assert "note: steps do not wait alike: counted are 3 whole rounds of 4 steps" in said


def test_the_trace_is_json(tmp_path: Path) -> None:
    import gzip

    (tmp_path / "train.py").write_text(PLAIN)
    run("--quiet", "train.py", "none", folder=tmp_path)
    (file,) = (tmp_path / "out").glob("*/*.pt.trace.json.gz")
    assert "traceEvents" in json.loads(gzip.decompress(file.read_bytes()))
    assert (tmp_path / "out" / "plugins" / "profile").is_dir()


def test_a_script_finds_itself_where_it_goes_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    script = "import os; os.chdir('elsewhere'); print(__file__, __loader__.path, open(__file__).read().count('print'))"
    (tmp_path / "script.py").write_text(script)
    (tmp_path / "link.py").symlink_to("script.py")
    for name in ("script.py", "link.py"):
        plain = subprocess.run([sys.executable, name], capture_output=True, text=True, cwd=tmp_path, check=True)
        assert run(name, folder=tmp_path).stdout == plain.stdout == f"{tmp_path / name} {tmp_path / name} 2\n"


EXITING = """
import os, threading, time, torch, syncscope
made = threading.Event()
def watchdog():
    made.wait()
    print("exit", flush=True)
    os._exit(3)
p = torch.nn.Parameter(torch.ones(1))
threading.Thread(target=watchdog, daemon=True).start()
for step in syncscope.steps(range(10**9)):
    (p * 1).sum().backward()
    print("step", flush=True)
    time.sleep(0.005)
    if step == 100: made.set()  # of which some were not recorded
"""


def test_a_thread_that_exits_ends_the_program_at_once(tmp_path: Path) -> None:
    (tmp_path / "exiting.py").write_text(EXITING)
    done = run("--device", "cpu", "exiting.py", folder=tmp_path)
    assert done.returncode == 3, done.stderr
    before, _, after = done.stdout.partition("exit\n")
    assert before.count("step") > 10
    assert after.count("step") < 200
    trace = recorded(tmp_path)
    assert sum(event.kind == Kind.STEP for event in trace) > 0  # some warm the recorder up


WAITING = """
import torch
p = torch.nn.Parameter(torch.ones(3, device="cuda"))
optimizer = torch.optim.SGD([p], 0.1)
for step in range(20):
    loss = (p * p).sum()
    loss.backward()
    optimizer.step()
    loss.item()
"""


def test_what_is_open_names_the_command_that_settles_it(tmp_path: Path, forked: Python) -> None:
    pytest.importorskip("pyopencl")
    (tmp_path / "train.py").write_text(WAITING)
    done = run_in(forked, "--device", "ocl", "train.py", "--name", "a b", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    word = done.stderr.partition("answer")[2].split()[0]
    named = " --device ocl train.py --name 'a b'` times steps" in done.stderr
    assert named is (word != "leave"), done.stderr
