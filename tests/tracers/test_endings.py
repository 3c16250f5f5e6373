"""What becomes of a recording when a program ends: by an exception, a signal, `os._exit`, a fork, a full disk."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tracers.conftest import steps

import syncscope
from syncscope import UserError, kineto
from syncscope.model.trace import Kind
from syncscope.tracers import record_file, recovery
from syncscope.tracers.session import Session


def test_an_exception_passes_unchanged_and_the_trace_is_saved(tmp_path: Path) -> None:
    error = ValueError("the program's own")

    def program() -> None:
        with syncscope.trace(tmp_path / "run.json") as trace:
            trace.step()
            raise error

    with pytest.raises(ValueError, match="the program's own") as caught:
        program()
    assert caught.value is error
    assert steps(kineto.read(tmp_path / "run.json")) == ["ProfilerStep#0"]


def test_a_trace_that_cannot_be_written_ends_no_program_and_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with syncscope.trace("/proc/nowhere/run.json") as trace:
        trace.step()
    assert not trace.files
    assert steps(trace.trace) == ["ProfilerStep#0"]
    said = capsys.readouterr().err
    assert "cannot be written" in said
    (left,) = re.findall(r"`syncscope report (\S+)`", said)
    assert steps(recovery.recover_file(Path(left))) == ["ProfilerStep#0"]
    with pytest.raises(ValueError, match="own"), syncscope.trace("/proc/nowhere/run.json"):
        raise ValueError("own")


def test_a_folder_that_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    with Session(folder=Path("/proc")) as session:
        session.step()
    assert "cannot record into /proc" in capsys.readouterr().err
    with pytest.raises(UserError, match="nothing was recorded: cannot record into /proc"):
        session.trace  # noqa: B018
    with Session() as session:  # and nothing is left of the attempt
        session.step()
    assert len(steps(session.trace)) == 1


FULL = """
import ctypes, resource, signal, sys, warnings
import numpy as np
from pathlib import Path
sys.path.insert(0, {tests!r})
from syncscope.tracers.opencl import abi, dispatch
from syncscope.tracers.session import Session
fake = ctypes.CDLL({fake!r})
fake.setup.restype = ctypes.c_void_p
table = fake.setup(0)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with Session() as session:
    dispatch.tables.hook(table, "fake")
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
    fake.enqueue(50_000)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(len(session.trace), session.trace.meta["notes"])
"""


def test_a_full_disk_is_counted_and_said(python: Any, fake_library: Any) -> None:
    """A limit on the size of files stands for the disk: the writes fail in the same way."""
    done = python(FULL.format(tests=str(Path(__file__).parent), fake=fake_library._name))
    assert done.returncode == 0, done.stderr
    events, said = re.fullmatch(
        r"(\d+) \['(\d+ records of OpenCL were lost: no room on the disk of the recording)'.*\]\n", done.stdout
    ).groups()
    assert 0 < int(events) < 100_000
    assert int(said.split()[0]) > 50_000


KILLED = """
import ctypes, os, signal, sys
from pathlib import Path
from syncscope.tracers.opencl import dispatch
from syncscope.tracers.session import Session
fake = ctypes.CDLL({fake!r})
fake.setup.restype = ctypes.c_void_p
table = fake.setup(0)
session = Session(folder=Path.cwd())
with session:
    dispatch.tables.hook(table, "fake")
    fake.enqueue(30_000)
    session.step()
    session._take.recording.events.flush()
    print("ready", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_recorded_before_sigkill_is_readable(python: Any, fake_library: Any, tmp_path: Path) -> None:
    done = python(KILLED.format(fake=fake_library._name))
    assert done.returncode == -signal.SIGKILL
    assert done.stdout == "ready\n"
    trace = recovery.recover(tmp_path)
    assert trace is not None
    assert int((trace.kind == Kind.CALL).sum()) == 30_000
    assert int((trace.kind == Kind.KERNEL).sum()) > 29_900  # the last stamps may not have been asked for
    assert steps(trace) == ["ProfilerStep#0"]
    assert "ended without ending its recording" in trace.meta["notes"][0]


def test_a_folder_without_recordings_recovers_nothing_and_other_files_are_refused(tmp_path: Path) -> None:
    assert recovery.recover(tmp_path) is None
    (tmp_path / "other.records").write_text("something else")
    with pytest.raises(UserError, match="is not a recording of syncscope"):
        record_file.read(tmp_path / "other.records")


EXITS = """
import os, syncscope
with syncscope.trace("run.json") as trace:
    trace.step()
    os._exit(7)
"""


def test_what_was_recorded_before_os_exit_is_written(python: Any, tmp_path: Path) -> None:
    assert python(EXITS).returncode == 7
    assert steps(kineto.read(tmp_path / "run.json")) == ["ProfilerStep#0"]
    assert not list(tmp_path.glob("*.records"))


EXITS_ASIDE = """
import os, syncscope, threading
with syncscope.trace() as trace:
    trace.step()
    threading.Thread(target=os._exit, args=(7,)).start()
    while True:
        trace.step()
"""


def test_os_exit_of_a_thread_leaves_nothing_where_nobody_is_given_the_trace(python: Any, tmp_path: Path) -> None:
    assert python(EXITS_ASIDE).returncode == 7
    assert not list(tmp_path.glob("*.records"))


EXITS_WITHIN = """
import os, syncscope
with syncscope.trace("run.json") as outer:
    outer.step()
    with syncscope.trace():
        os._exit(7)
"""


def test_os_exit_within_two_recordings_keeps_the_outer_one(python: Any, tmp_path: Path) -> None:
    assert python(EXITS_WITHIN).returncode == 7
    assert steps(kineto.read(tmp_path / "run.json")) == ["ProfilerStep#0"]
    assert not list(tmp_path.glob("*.records"))


ENDS_WITHIN = """
import syncscope
def forbidden():
    with syncscope.forbid_syncs(dry=False):
        yield
held = forbidden()
next(held)
"""


def test_an_interpreter_that_ends_within_a_block_says_nothing(python: Any) -> None:
    done = python(ENDS_WITHIN)
    assert (done.returncode, done.stderr) == (0, "")


FORKS = """
import ctypes, os, sys, syncscope
from syncscope.tracers.opencl import abi, dispatch
fake = ctypes.CDLL({fake!r})
fake.setup.restype = ctypes.c_void_p
table = fake.setup(0)
with syncscope.trace("run.json") as trace:
    dispatch.tables.hook(table, "fake")
    fake.enqueue(100)
    child = os.fork()
    fake.enqueue(1000 if child == 0 else 10)
    if child:
        os.waitpid(child, 0)
        trace.step()
print("over")
"""


FORKS_AND_EXITS = """
import os, syncscope
with syncscope.trace("run.json") as trace:
    for _ in range(3):
        if os.fork() == 0:
            os._exit(0)  # as workers of a DataLoader do
        os.wait()
        trace.step()
"""


def test_children_that_exit_leave_the_recording_of_their_parent(python: Any, tmp_path: Path) -> None:
    done = python(FORKS_AND_EXITS)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(steps(kineto.read(tmp_path / "run.json"))) == 3


def test_a_child_of_a_fork_records_nothing(python: Any, fake_library: Any, tmp_path: Path) -> None:
    done = python(FORKS.format(fake=fake_library._name))
    assert done.stdout == "over\nover\n", done.stderr
    trace = kineto.read(tmp_path / "run.json")
    assert int((trace.kind == Kind.KERNEL).sum()) == 110
    assert steps(trace) == ["ProfilerStep#0"]


HOOKED_AT_EXIT = """
import pyopencl as cl, numpy as np
from syncscope.tracers.session import Session
session = Session()
session.__enter__()
context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
queue = cl.CommandQueue(context)
memory = cl.Buffer(context, cl.mem_flags.READ_WRITE, 64)
cl.enqueue_fill_buffer(queue, memory, np.float32(1), 0, 64)
print("left open")
"""


def test_a_recording_left_open_at_exit(python: Any, pocl: Any) -> None:
    done = python(HOOKED_AT_EXIT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "left open\n", "")


INTERRUPTED = """
import sys
sys.path.insert(0, {tests!r})
from old_pocl import name_cpu
import pyopencl as cl, numpy as np, syncscope
device = cl.get_platforms()[0].get_devices()[0]
name_cpu(device)
context = cl.Context([device])
program = cl.Program(context, '''
__kernel void slow(__global float *a, int n) {{ float x = a[0]; for (int i = 0; i < n; i++) x = x * 0.999f + 1; a[0] = x; }}
''').build()
memory = cl.Buffer(context, cl.mem_flags.READ_WRITE, 64)
with syncscope.trace("run.json") as trace:
    queue = cl.CommandQueue(context)
    for n in range(100_000):
        program.slow(queue, (1,), None, memory, np.int32(2_000_000))
        queue.finish()
        if n == 2:
            print("begin", flush=True)
"""


def test_ctrl_c_while_the_driver_waits(pocl: Any, tmp_path: Path, start: Any) -> None:
    script = tmp_path / "program.py"
    script.write_text(INTERRUPTED.format(tests=str(Path(__file__).parents[1])))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = start([sys.executable, str(script)], **pipes, text=True, cwd=tmp_path, env=environment)
    assert child.stdout.readline() == "begin\n"
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=300)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    trace = kineto.read(tmp_path / "run.json")
    assert any(e.name == "slow" for e in trace)
    assert any(e.name == "clFinish" for e in trace)


DEAD = "CUDA error: device-side assert triggered"


@pytest.fixture
def dead_context(monkeypatch: pytest.MonkeyPatch) -> Any:
    """As where a kernel of the program's has failed: from then on every call says so."""
    torch = pytest.importorskip("torch")

    def fails(*_: object, **__: object) -> Any:
        raise RuntimeError(DEAD)

    def kill() -> None:
        monkeypatch.setattr(torch.cuda, "_initialized", True)
        monkeypatch.setattr(torch._C, "_cuda_synchronize", fails, raising=False)
        for name in ("is_current_stream_capturing", "Event", "synchronize"):
            monkeypatch.setattr(torch.cuda, name, fails)

    return kill


def test_a_dead_device_loses_no_recording_and_the_program_hears_its_own_error(
    tmp_path: Path, dead_context: Any
) -> None:
    error = RuntimeError(DEAD)

    def program() -> None:
        with syncscope.trace(tmp_path / "run.json") as trace:
            trace.step()
            trace.step()
            dead_context()
            raise error

    with pytest.raises(RuntimeError) as caught:
        program()
    assert caught.value is error
    assert not getattr(error, "__notes__", ())
    assert steps(kineto.read(tmp_path / "run.json")) == ["ProfilerStep#0", "ProfilerStep#1"]


def test_a_program_that_goes_on_with_a_dead_device_is_recorded(tmp_path: Path, dead_context: Any) -> None:
    with syncscope.trace(tmp_path / "run.json", wait=1, active=2) as trace:
        for number in range(6):
            if number == 2:
                dead_context()
            trace.step()
    assert len(steps(kineto.read(tmp_path / "run.json"))) == 2


@pytest.mark.parametrize("method", ["stop", "settle"])
def test_a_source_that_fails_as_it_ends_costs_the_others_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    from syncscope.tracers.sources.modules import SOURCE

    def fails(self: Any) -> None:
        raise RuntimeError("no more of it")

    monkeypatch.setattr(SOURCE, method, fails)
    with syncscope.trace(tmp_path / "outer.json") as outer:
        outer.step()
        with syncscope.trace(tmp_path / "inner.json") as inner:
            inner.step()
        outer.step()
    for name in ("outer", "inner"):
        trace = kineto.read(tmp_path / f"{name}.json")
        assert steps(trace)
    told = [note for note in kineto.read(tmp_path / "outer.json").meta["notes"] if "no more of it" in note]
    assert told == ["modules could not end as it should: RuntimeError: no more of it"] or method == "settle"


UNSEEN = """
import syncscope
with syncscope.trace() as trace:
    trace.step()
    trace.step()
print("over")
{seen}
"""


@pytest.mark.parametrize(
    "seen",
    [
        "",
        "trace.report()",
        *(pytest.param(f"trace.{one}", marks=pytest.mark.slow) for one in ("trace", "save('runs')")),
    ],
)
def test_a_recording_that_nobody_asks_for_is_said_to_be_lost(python: Any, seen: str) -> None:
    said = python(UNSEEN.format(seen=seen)).stderr
    assert ("recorded 2 steps, kept in memory alone" in said) == (not seen), said
    assert said.count("\n") == (not seen), said
