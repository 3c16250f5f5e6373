"""How long a step takes without the recorder: what the recording itself measures, before it or after."""

import itertools
import sys
import time
import types

import pytest
from tracers.conftest import steps

from syncscope import kineto
from syncscope.analysis.summary import summarize
from syncscope.model.trace import Trace
from syncscope.tracers import process_recording, step_times
from syncscope.tracers.session import Session


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
    assert meta["untraced"]["steps"] >= 1  # on a busy machine few are alike
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
    assert traces[0].meta["untraced"]["steps"] >= 1
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


def test_short_steps_are_timed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device is asked every 5 ms, and when a step has just ended that is the last."""

    class Asked:
        device = 0

        def __init__(self) -> None:
            self.at = now

        def query(self) -> bool:
            return True

        def elapsed_time(self, other: "Asked") -> float:
            asked.append((self.at, other.at))
            return (other.at - self.at) / 1e6

    now, asked = 0, list[tuple[int, int]]()
    monkeypatch.setattr(step_times, "monotonic_ns", lambda: now)
    monkeypatch.setattr(step_times, "_event", Asked)
    times = step_times.StepTimes()
    for length in (0, 2, 2, 2, 3, 3, 3, 2, 2):
        now += length * 1_000_000
        times.boundary()
    now += 1_000
    times.pause()
    times.boundary()
    assert times.every() == pytest.approx([2e6] * 3 + [3e6] * 2 + [2.5e6] * 2 + [2e6], rel=1e-3)
    assert [upto for _, upto in asked] == [6_000_000, 12_000_000, 17_000_000, 19_001_000]
    facts = times.facts()
    assert facts is not None
    assert (facts["steps"], facts["measured"], len(times)) == (8, 4, 8)


def test_a_step_in_which_kernels_were_built_is_no_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = types.SimpleNamespace(built=0)
    monkeypatch.setitem(sys.modules, "syncscope.kernels.programs", programs)
    with Session(wait=6, active=1) as session:
        for number in range(7):
            programs.built += number in (0, 3)
            session.step()
    assert session.trace.meta["untraced"]["steps"] <= 4


def test_what_a_queue_is_behind_after_the_last_step_its_steps_took_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host asks for a step in 2 ms, the device needs 5: after ten it is 30 ms behind, one step of which is as ever."""
    now, lag = 0, 30

    def finish() -> None:
        nonlocal now
        now += lag * 1_000_000

    monkeypatch.setattr(step_times, "monotonic_ns", lambda: now)
    queue = types.SimpleNamespace(finish=finish, launches=0)
    monkeypatch.setitem(sys.modules, "syncscope.kernels.queue", queue)
    times = step_times.StepTimes()
    for _ in range(11):
        times.boundary()
        queue.launches += 1
        now += 2_000_000
    now -= 2_000_000
    times.pause()
    assert times.every() == pytest.approx([4.8e6] * 10)
    lag, queue.launches = 2, 12  # it was a step behind all the time
    times.boundary()
    now += 3_000_000
    times.boundary()
    times.pause()
    assert times.every()[10:] == pytest.approx([3e6])
    times.boundary()
    begin = now
    times.pause()
    assert now == begin  # nothing was enqueued: nobody waits, and no recording shows a call of ours


def test_a_host_that_runs_ahead_of_ocl_is_not_told_for_the_device() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("syncscope.kernels")
    x = torch.randn(320, 320).to("ocl")  # it computes for tens of times as long as the host takes to ask

    def run(steps: int, session: Session | None = None) -> float:
        torch.ocl.synchronize()
        since = time.monotonic_ns()
        for _ in range(steps):
            y = x
            for _ in range(4):
                y = y @ x
            if session:
                session.step()
        torch.ocl.synchronize()
        return (time.monotonic_ns() - since) / steps

    run(3)
    for _ in range(9):
        took = run(12)
        with Session(wait=12, active=8) as session:
            run(20, session)
        took = min(took, run(12))
        meta, report = session.trace.meta, summarize(session.trace)
        assert report.device_busy is not None
        if report.device_busy > 0.6:
            break  # else others kept the host or the device from the processors
    assert meta["untraced"]["median_ns"] > 0.3 * took  # to ask for the work takes less than a tenth
    assert report.device_busy > 0.6
    assert report.step is not None
    assert report.step > 0.3 * took
    assert not report.lines
