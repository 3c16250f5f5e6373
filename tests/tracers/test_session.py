"""Steps and schedules, and what is recorded of them."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from in_c import in_c
from tracers.conftest import steps

import syncscope
from syncscope import UserError, kineto
from syncscope.model.trace import Kind, Trace
from syncscope.tracers.session import Session


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


def test_trace_as_a_decorator_records_and_returns_what_the_function_does(tmp_path: Path) -> None:
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


def test_steps_are_found_where_an_optimizer_that_was_seen_before_is_kept_and_does_not_step() -> None:
    """In a notebook, where a model is made and trained once more; and where one program trains two models in turn."""
    torch = pytest.importorskip("torch")
    first, second = (torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1) for _ in range(2))
    found = []
    for optimizer in (first, second, first):
        with Session(whole=True) as session:
            for _ in range(3):
                optimizer.step()
        found.append(len(steps(session.trace)))
    assert found == [3, 3, 3]
    with Session(whole=True) as session:
        for optimizer in (first, second):
            for _ in range(200):
                optimizer.step()
    assert 200 < len(steps(session.trace)) < 300


BY_HAND = """
import torch
from syncscope.model.trace import Kind
from syncscope.tracers.session import Session

weight = torch.ones(3, requires_grad=True)


def steps(trained):
    with Session(whole=True) as session:
        for _ in range(9):
            weight.grad = None
            loss = (weight * 2).sum()
            torch.autograd.grad(loss, weight, retain_graph=True)
            loss.backward()
            trained()
    return int((session.trace.kind == Kind.STEP).sum())


print(steps(lambda: weight.data.sub_(weight.grad)), end=" ")
optimizer = torch.optim.SGD([weight], 0.1)
print(steps(lambda: None), steps(optimizer.step))
"""


@in_c
def test_backward_passes_end_steps_where_there_is_no_optimizer(forked: Any) -> None:
    """From the fourth on: until then an optimizer may be to come. What `autograd.grad` is for nobody knows."""
    done = forked("-c", BY_HAND)
    assert done.stdout.split() == ["6", "0", "9"], done.stderr


@pytest.mark.parametrize(
    "schedule", [{"whole": True}, {"wait": 2, "active": 2}, {"warmup": 1, "active": 2}, {"active": 2}]
)
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


LATE = """
import sys
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
