"""Operators of our own device in a recording: each of them once, on its thread, and at what price."""

import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pyopencl")

from syncscope.kernels import queue  # noqa: E402 - registers the device
from syncscope.model.trace import Flag, Kind  # noqa: E402
from syncscope.tracers.opencl import compiled  # noqa: E402
from syncscope.tracers.session import Session  # noqa: E402


def operators(trace):
    return [event for event in trace if event.kind == Kind.OP]


def test_each_operator_once_on_the_thread_that_ran_it():
    x = torch.rand(3, device="ocl", requires_grad=True)
    with Session() as session:
        (x * 2).relu().sum().backward()
    found = operators(session.trace)
    threads = {event.name: event.lane.thread for event in found}
    assert Counter(event.name for event in found)["aten::threshold_backward"] == 1
    assert threads["aten::relu"] == threading.get_native_id() != threads["aten::threshold_backward"]
    assert not queue.observers


def test_what_an_operator_launches_lies_inside_of_it():
    x = torch.rand(64, 64, device="ocl")
    with Session() as session:
        for _ in range(50):
            x = (x @ x).softmax(0)
    trace = session.trace
    spans = [(e.start, e.end) for e in operators(trace)]
    launches = [e for e in trace if e.kind == Kind.CALL and e.name == "clEnqueueNDRangeKernel"]
    assert len(launches) >= 100
    assert all(any(start <= e.start and e.end <= end for start, end in spans) for e in launches)


def test_a_fallback_is_one_operator_around_those_that_it_is_made_of():
    x = torch.rand(4, 4, device="ocl")
    with Session() as session:
        torch.linalg.inv(x @ x)
    (fallback,) = [e for e in operators(session.trace) if e.flags & Flag.FALLBACK]
    assert fallback.name == "fallback of aten::linalg_inv_ex"
    inside = [e.name for e in operators(session.trace) if fallback.start < e.start and e.end < fallback.end]
    assert "aten::_copy_from" in inside


EARLY = """
from syncscope.model.trace import Kind
from syncscope.tracers.session import Session
with Session() as session:
    import torch, syncscope.kernels
    torch.ones(2, device="ocl").mul(2)
print([e.name for e in session.trace if e.kind == Kind.OP])
"""


def test_a_device_that_is_imported_in_the_recording_is_heard_from_its_first_operator_on(python):
    done = python(EARLY)
    assert done.returncode == 0, done.stderr
    assert "aten::fill_" in done.stdout
    assert "aten::mul" in done.stdout


@pytest.mark.skipif(bool(compiled.why_not()), reason="no compiled hook")
def test_recording_an_operator_calls_nothing_of_python():
    x = torch.rand(8, device="ocl")

    def calls():
        """What this thread calls for twenty operators, by kind."""
        found = Counter()
        sys.setprofile(lambda frame, event, what: found.update([event]))
        try:
            for _ in range(20):
                x.mul_(1.5)
        finally:
            sys.setprofile(None)
        return found

    calls()
    plain = calls()
    with Session() as session:
        x.mul_(1.0)  # a queue that keeps times is made
        recorded = calls()
    count = len(operators(session.trace)) - 1
    assert count >= 20
    assert recorded["call"] == plain["call"]
    assert recorded["c_call"] - plain["c_call"] <= 2 * count  # where Python calls: the time before, the record after


COLD = """
import os
os.environ["POCL_CACHE_DIR"] = "pocl"
import torch, syncscope, syncscope.kernels
x = torch.randn(64, 64).to("ocl")
with syncscope.trace() as trace:
    for n in range(6):
        y = (x * 1.5).relu() @ x
        for _ in range(20):
            y = torch.sigmoid(y + 1)
        y.sum().item()
        trace.step()
found = trace.report(show=False)
first = found.steps[0]
print(first.settled, found.steady, found.step / (first.end - first.start))
"""


def test_a_step_that_builds_kernels_is_in_no_price(
    forked: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a cold cache it takes a thousand times the others, and one `.item()` was said to save 97 % of a step."""
    monkeypatch.chdir(tmp_path)
    done = forked("-c", COLD)
    assert not done.returncode, done.stderr
    settled, steady, part = done.stdout.split()
    assert settled == "False"
    assert int(steady) <= 4
    assert float(part) < 0.2
