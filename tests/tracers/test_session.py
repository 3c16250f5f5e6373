"""Steps, schedules and what becomes of a recording when things go wrong. Programs run in processes of their own."""

import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any

import pytest

import syncscope
from syncscope import UserError, kineto
from syncscope.model.trace import Kind, Trace
from syncscope.tracers import process_recording, record_file, step_times
from syncscope.tracers.session import Session


def steps(trace: Trace) -> list[str]:
    return [event.name for event in trace if event.kind == Kind.STEP]


def test_a_schedule_as_in_torch_profiler() -> None:
    traces: list[Trace] = []
    with Session(wait=1, warmup=1, active=2, repeat=2, on_trace=traces.append) as session:
        for _ in range(10):
            session.step()
    assert [steps(t) for t in traces] == [["ProfilerStep#2", "ProfilerStep#3"], ["ProfilerStep#6", "ProfilerStep#7"]]


def test_repeat_zero_goes_on_to_the_end() -> None:
    traces: list[Trace] = []
    with Session(wait=1, active=1, repeat=0, on_trace=traces.append) as session:
        for _ in range(7):
            session.step()
    assert [steps(t) for t in traces] == [["ProfilerStep#1"], ["ProfilerStep#3"], ["ProfilerStep#5"], []]


def test_wait_without_active_records_all_the_rest() -> None:
    with Session(wait=2) as session:
        for _ in range(4):
            session.step()
    assert steps(session.trace) == ["ProfilerStep#2", "ProfilerStep#3"]


@pytest.mark.parametrize("bad", [{"active": 0}, {"wait": -1}, {"repeat": -1}])
def test_numbers_that_make_no_sense(bad: dict[str, int]) -> None:
    with pytest.raises(UserError, match="records nothing"):
        Session(**bad)


def test_a_trace_before_its_end() -> None:
    with pytest.raises(UserError, match="nothing has been recorded"):
        _ = Session().trace


def test_steps_of_a_loader() -> None:
    with Session() as session:
        assert list(syncscope.steps([1, 2, 3])) == [1, 2, 3]
    assert len(steps(session.trace)) == 3
    assert list(syncscope.steps("ab")) == ["a", "b"]  # without a recording it is the loader itself


def test_as_a_decorator(tmp_path: Path) -> None:
    trace = syncscope.trace(tmp_path / "run.json")

    @trace
    def double(x: int) -> int:
        """Twice."""
        trace.step()
        return 2 * x

    assert double(4) == 8
    assert double.__doc__ == "Twice."
    assert steps(kineto.read(tmp_path / "run.json")) == ["ProfilerStep#0"]


def test_a_decorated_function_may_call_itself_and_run_in_threads() -> None:
    traces: list[Trace] = []
    session = Session(on_trace=traces.append)

    @session
    def work(depth: int) -> int:
        session.step()
        return work(depth - 1) + 1 if depth else 0

    assert work(2) == 2
    assert [len(steps(trace)) for trace in traces] == [3]
    threads = [threading.Thread(target=work, args=(0,)) for _ in range(4)]
    work_while = Session()
    with work_while:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sum(len(steps(trace)) for trace in traces) == 3 + 4


def test_steps_are_found_at_the_optimizer_where_nobody_marks_them() -> None:
    torch = pytest.importorskip("torch")
    first, second = (torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1) for _ in range(2))
    with Session() as session:
        for _ in range(3):
            first.step()
            second.step()
    assert len(steps(session.trace)) == 3
    with Session() as session:
        for _ in range(3):
            first.step()
            session.step()
    assert len(steps(session.trace)) == 3


@pytest.mark.parametrize("schedule", [{}, {"wait": 2, "active": 2}, {"warmup": 1, "active": 2}, {"active": 2}])
def test_an_optimizer_that_steps_several_times_in_a_marked_step_marks_none(schedule: dict[str, int]) -> None:
    torch = pytest.importorskip("torch")
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1)
    with Session(**schedule) as session:
        for _ in range(6):
            for _ in range(4):
                optimizer.step()
                time.sleep(0.005)
            session.step()
    lengths = [event.duration for event in session.trace if event.kind is Kind.STEP]
    assert len(lengths) == schedule.get("active", 6)
    assert min(lengths) > 19_000_000
    assert session.trace.meta.get("untraced", {"median_ns": 20e6})["median_ns"] > 19e6


def test_regions_of_the_program_are_kept() -> None:
    torch = pytest.importorskip("torch")
    with Session() as session, torch.profiler.record_function("forward"):
        pass
    assert [e.name for e in session.trace if e.kind == Kind.ANNOTATION] == ["forward"]


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


def test_an_exception_comes_before_a_trace_that_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="own") as caught, syncscope.trace("/proc/nowhere/run.json"):
        raise ValueError("own")
    assert "the recording was lost" in caught.value.__notes__[0]
    with pytest.raises(UserError, match="cannot be written"), syncscope.trace("/proc/nowhere/run.json"):
        pass


def test_a_folder_that_cannot_be_written() -> None:
    with pytest.raises(UserError, match="cannot record into /proc"), Session(folder=Path("/proc")):
        pass
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
        r"(\d+) \['(\d+ records were lost: no room on the disk of the recording)'.*\]\n", done.stdout
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
    trace = process_recording.recover(tmp_path)
    assert trace is not None
    assert int((trace.kind == Kind.CALL).sum()) == 30_000
    assert int((trace.kind == Kind.KERNEL).sum()) > 29_900  # the last stamps may not have been asked for
    assert steps(trace) == ["ProfilerStep#0"]
    assert "ended without ending its recording" in trace.meta["notes"][0]


def test_nothing_to_recover(tmp_path: Path) -> None:
    assert process_recording.recover(tmp_path) is None
    (tmp_path / "other.records").write_text("something else")
    with pytest.raises(UserError, match="is not a recording of syncscope"):
        record_file.read(tmp_path / "other.records")


EXITS = """
import os, syncscope
with syncscope.trace("run.json") as trace:
    trace.step()
    os._exit(7)
"""


def test_os_exit(python: Any, tmp_path: Path) -> None:
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


def test_a_child_of_a_fork_records_nothing(python: Any, fake_library: Any, tmp_path: Path) -> None:
    done = python(FORKS.format(fake=fake_library._name))
    assert done.stdout == "over\nover\n", done.stderr
    trace = kineto.read(tmp_path / "run.json")
    assert int((trace.kind == Kind.KERNEL).sum()) == 110
    assert steps(trace) == ["ProfilerStep#0"]


HOOKED_AT_EXIT = """
import sys
import time
import types
sys.path.insert(0, {tests!r})
from conftest import name_cpu
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
    done = python(HOOKED_AT_EXIT.format(tests=str(Path(__file__).parent)))
    assert (done.returncode, done.stdout, done.stderr) == (0, "left open\n", "")


INTERRUPTED = """
import sys
import time
import types
sys.path.insert(0, {tests!r})
from conftest import name_cpu
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


def test_ctrl_c_while_the_driver_waits(pocl: Any, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(INTERRUPTED.format(tests=str(Path(__file__).parent)))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    child = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "begin\n"
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    trace = kineto.read(tmp_path / "run.json")
    assert any(e.name == "slow" for e in trace)
    assert any(e.name == "clFinish" for e in trace)


LATE = """
import sys
import time
import types
sys.path.insert(0, {tests!r})
from syncscope.tracers.session import Session
assert "pyopencl" not in sys.modules
with Session() as session:
    import pyopencl as cl, numpy as np
    context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    queue = cl.CommandQueue(context)
    memory = cl.Buffer(context, cl.mem_flags.READ_WRITE, 64)
    cl.enqueue_fill_buffer(queue, memory, np.float32(1), 0, 64)
    cl.enqueue_copy(queue, np.zeros(16, np.float32), memory)
print(sorted({{e.name for e in session.trace}}))
"""


def test_a_driver_that_is_loaded_late_is_seen(python: Any, pocl: Any) -> None:
    done = python(LATE.format(tests=str(Path(__file__).parent)))
    assert done.returncode == 0, done.stderr
    assert "Memset (Device)" in done.stdout
    assert "read_buffer" in done.stdout


def test_steps_before_a_recording_run_without_a_hook_and_are_timed() -> None:
    torch = pytest.importorskip("torch")
    plain = sys.modules["warnings"].filters, torch.autograd.profiler.profile._prepare_trace
    with Session(wait=4, warmup=1, active=3) as session:
        for number in range(8):
            here = sys.modules["warnings"].filters, torch.autograd.profiler.profile._prepare_trace
            assert (here == plain) == (number < 5)
            time.sleep(0.2 if number == 0 else 0.02 if number < 5 else 0.03)
            session.step()
    meta = session.trace.meta
    assert meta["untraced"]["steps"] >= 3  # on a busy machine not all of the others are alike
    assert meta["untraced"]["steps"] + meta["untraced"]["left_out"] == 5
    assert 20e6 <= meta["untraced"]["low_ns"] <= meta["untraced"]["median_ns"] <= meta["untraced"]["high_ns"]
    assert meta["traced"]["median_ns"] >= 30e6
    assert kineto.read(kineto.write(session.trace)).meta["untraced"] == meta["untraced"]


def test_where_the_schedule_has_no_steps_before_some_after_are_timed() -> None:
    traces: list[Trace] = []
    with Session(active=2, on_trace=traces.append) as session:
        for number in range(20):
            time.sleep(0.01)
            session.step()
            assert bool(traces) == (number >= 11)
    assert traces[0].meta["untraced"]["steps"] >= 3
    with Session(active=2) as session:
        for _ in range(2):
            session.step()
        assert len(steps(session.trace)) == 2  # who wants it sooner has it sooner
    with Session(active=2) as session:
        session.step()
    assert "untraced" not in session.trace.meta


def test_steps_after_a_source_that_lingers_are_no_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_recording.ProcessRecording, "lingers", True)
    traces: list[Trace] = []
    with Session(active=2, on_trace=traces.append) as session:
        for _ in range(2):
            session.step()
        assert len(traces) == 1
        assert "untraced" not in traces[0].meta


def test_a_step_in_an_outer_recording_is_not_untraced() -> None:
    with Session(), Session(wait=5, active=1) as session:
        for _ in range(6):
            session.step()
    assert "untraced" not in session.trace.meta


def test_steps_that_are_found_are_as_long_as_they_were() -> None:
    torch = pytest.importorskip("torch")
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1)
    with Session(wait=2, active=2) as session:
        for _ in range(5):
            time.sleep(0.01)
            optimizer.step()
    assert session.trace.meta["untraced"]["low_ns"] >= 10_000_000


def test_warming_up_ends_when_steps_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = itertools.accumulate([0, 45, 15, 14, 13, 10, 9, 10, 11, 10, 9])  # ms; none but the first is much longer
    monkeypatch.setattr(step_times, "monotonic_ns", lambda: next(ends) * 1_000_000)
    times = step_times.StepTimes()
    for _ in range(11):
        times.boundary()
    facts = times.facts()
    assert facts is not None
    assert (facts["left_out"], facts["steps"], facts["median_ns"]) == (4, 6, 10_000_000)


def test_a_step_in_which_kernels_were_built_is_no_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = types.SimpleNamespace(built=0)
    monkeypatch.setitem(sys.modules, "syncscope.kernels.programs", programs)
    with Session(wait=6, active=1) as session:
        for number in range(7):
            programs.built += number in (0, 3)
            session.step()
    assert session.trace.meta["untraced"]["steps"] <= 4
