"""CUDA by CUPTI's own records, from a CUPTI that stands in for the driver's."""

import ctypes as c
import os
import resource
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from syncscope.model.trace import Kind, Trace  # noqa: E402
from syncscope.tracers import recovery  # noqa: E402
from syncscope.tracers.columns import Builder  # noqa: E402
from syncscope.tracers.cupti import library  # noqa: E402
from syncscope.tracers.lines import library as lines  # noqa: E402
from syncscope.tracers.python_events import PythonEvents  # noqa: E402
from syncscope.tracers.sources import cupti, torch_profiler  # noqa: E402

NAME = b"_ZN2at6native14norm_of_a_rowsEv"
GET_DEVICE, LAUNCH, COPY, SYNCHRONIZE, RECORD, WAIT = range(1, 7)


@pytest.fixture(scope="session")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    made = tmp_path_factory.mktemp("cupti") / "libcupti.so.13"
    source = Path(__file__).with_name("fake_cupti.c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", source, "-o", made], check=True)
    found = c.CDLL(str(made))
    found.call.argtypes = found.kernel.argtypes = None
    return found


@pytest.fixture
def cuda(fake: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(library, "library", lambda: fake)
    monkeypatch.setattr(cupti, "wanted", lambda: True)
    fake.count_cycles(0)
    monkeypatch.setattr(torch._C, "_cuda_synchronize", fake.synchronize, raising=False)
    library.heard.cache_clear()
    yield fake
    fake.count_cycles(0)
    library.heard.cache_clear()
    assert not torch_profiler.serving


def work(fake: Any, name: c.c_char_p) -> None:
    """A kernel, an event behind it for which another queue waits, and a copy to the host that the host waits for."""
    fake.call(GET_DEVICE, c.c_uint64(100))
    fake.kernel(fake.call(LAUNCH, c.c_uint64(2_000)), 7, c.c_uint64(5_000), name)
    fake.event(fake.call(RECORD, c.c_uint64(500)), 7, 3)
    fake.waits(fake.call(WAIT, c.c_uint64(500)), 20, 2, 3)
    fake.copy(fake.call(COPY, c.c_uint64(500)), 20, c.c_uint64(1_000), c.c_uint64(64))
    fake.waits(fake.call(SYNCHRONIZE, c.c_uint64(500)), 20, 3, 0)


def recorded(events: PythonEvents, source: cupti.Cupti) -> tuple[Trace, dict[str, Any]]:
    builder = Builder()
    meta = source.add(builder, events.began)
    return builder.trace(), meta


def test_what_cupti_tells_is_told_in_the_words_of_torch_profiler(cuda: Any, tmp_path: Path) -> None:
    events, source, name = PythonEvents(tmp_path), cupti.Cupti(), c.c_char_p(NAME)
    source.start(events)
    for _ in range(3):
        work(cuda, name)
        source.boundary()
    source.stop()
    trace, meta = recorded(events, source)
    events.close()
    kernel = next(e for e in trace if e.kind == Kind.KERNEL)
    call = next(e for e in trace if e.kind == Kind.CALL and e.correlation == kernel.correlation)
    assert (kernel.name, kernel.duration, kernel.lane.thread, kernel.lane.device) == (
        "at::native::norm_of_a_rows()",
        5_000,
        7,
        0,
    )
    assert (call.name, call.lane.thread) == ("cuLaunchKernel", threading.get_native_id())
    assert call.duration >= 2_000
    assert trace.known(trace.rows(Kind.KERNEL)[0]).grid == (70000, 2, 1)
    assert trace.known(trace.rows(Kind.KERNEL)[0]).block == (256, 1, 1)
    copy = next(e for e in trace if e.kind == Kind.COPY)
    assert (copy.name, copy.bytes, copy.lane.thread) == ("Memcpy DtoH (Device -> Pageable)", 64, 20)
    recording = [e for e in trace if e.name == "cuEventRecord"][
        1
    ]  # of the second step: waits are told of once a queue waits
    waits = [trace.known(int(row)) for row in trace.rows(Kind.SYNC)]
    assert [wait.sync_kind for wait in waits[:2]] == ["Stream Wait Event", "Stream Sync"]
    assert (waits[0].stream, waits[0].wait_on_stream, waits[0].wait_on_record) == (20, 7, recording.correlation)
    assert "cuCtxGetDevice" not in trace.names  # it asks the device for nothing
    assert sum(e.name != "cuCtxSynchronize" for e in trace) == 3 * (5 + 2 + 2) - 2
    now, slack = time.monotonic_ns() - events.began, meta["clocks"]["CUPTI"]["uncertainty_ns"]
    assert all(-slack <= e.start <= now + slack for e in trace)


def test_a_clock_that_counts_cycles_is_brought_to_ns(cuda: Any, tmp_path: Path) -> None:
    cuda.count_cycles(1)  # as torch.profiler leaves it
    events, source, name = PythonEvents(tmp_path), cupti.Cupti(), c.c_char_p(NAME)
    source.start(events)
    time.sleep(0.05)
    before = time.monotonic_ns() - events.began
    cuda.kernel(cuda.call(LAUNCH, c.c_uint64(10)), 7, c.c_uint64(1_000_000), name)
    after = time.monotonic_ns() - events.began
    time.sleep(0.05)
    source.stop()
    trace, meta = recorded(events, source)
    events.close()
    kernel = next(e for e in trace if e.kind == Kind.KERNEL)
    # A clock that is being set runs up to 500 ppm otherwise (adjtimex), unseen by readings at both ends: 25 us in these 50 ms.
    slack = meta["clocks"]["CUPTI"]["uncertainty_ns"] + 25_000
    assert abs(kernel.duration - 1_000_000) < 5_000
    assert before - slack <= kernel.start <= after + slack


def test_cupti_leaves_the_process_where_a_call_ends(cuda: Any, tmp_path: Path) -> None:
    events, source = PythonEvents(tmp_path), cupti.Cupti()
    source.start(events)
    assert not cuda.was_finalized()
    source.stop()
    events.close()
    assert cuda.was_finalized() == 1


def test_it_leaves_a_process_whose_device_has_failed(
    cuda: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failed() -> None:
        cuda.synchronize()
        raise RuntimeError("CUDA error: device-side assert triggered\nCompile with TORCH_USE_CUDA_DSA")

    events, source, name = PythonEvents(tmp_path), cupti.Cupti(), c.c_char_p(NAME)
    source.start(events)
    work(cuda, name)
    monkeypatch.setattr(torch._C, "_cuda_synchronize", failed, raising=False)
    source.stop()
    trace, meta = recorded(events, source)
    events.close()
    assert cuda.was_finalized()
    assert len(trace.rows(Kind.KERNEL)) == 1
    assert [note for note in meta["notes"] if "device-side assert" in note and "DSA" not in note]


def test_a_buffer_that_is_full_is_written_and_used_again(cuda: Any, tmp_path: Path) -> None:
    events, source, name = PythonEvents(tmp_path), cupti.Cupti(), c.c_char_p(NAME)
    source.start(events)
    for _ in range(20_000):
        cuda.kernel(cuda.call(LAUNCH, c.c_uint64(10)), 7, c.c_uint64(10), name)
    assert os.path.getsize(source.files[0]) > 1 << 20  # before it ends
    source.stop()
    trace, _ = recorded(events, source)
    events.close()
    assert len(trace.rows(Kind.KERNEL)) == sum(e.name == "cuLaunchKernel" for e in trace) == 20_000


def test_a_full_disk_ends_the_recording_and_costs_nothing_of_what_came_before(cuda: Any, tmp_path: Path) -> None:
    events, source, name = PythonEvents(tmp_path), cupti.Cupti(), c.c_char_p(NAME)
    source.start(events)
    cuda.kernel(cuda.call(LAUNCH, c.c_uint64(10)), 7, c.c_uint64(10), name)
    library.settle()
    whole, room = os.path.getsize(source.files[0]), 5 * 64 + 30  # it ends within a record
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (whole + room, most))
    try:
        for _ in range(20):
            cuda.call(LAUNCH, c.c_uint64(10))
        library.settle()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    cuda.kernel(cuda.call(LAUNCH, c.c_uint64(10)), 7, c.c_uint64(7_000), name)
    source.stop()
    trace, meta = recorded(events, source)
    events.close()
    assert [e.duration for e in trace if e.kind == Kind.KERNEL] == [10]
    assert sum(e.name == "cuLaunchKernel" for e in trace) == 1 + 5
    assert any("events of CUDA were lost" in note for note in meta["notes"])
    launches = sorted(e.start for e in trace if e.name == "cuLaunchKernel")
    assert meta["until"] == launches[1] + events.began  # the first of which nothing of the device is there


def test_a_process_that_was_killed_leaves_what_was_written(cuda: Any, tmp_path: Path) -> None:
    events, source, name = PythonEvents(tmp_path), cupti.Cupti(), c.c_char_p(NAME)
    source.start(events)
    work(cuda, name)
    library.settle()  # as CUPTI does when its buffer is full
    trace = recovery.recover(tmp_path)
    source.stop()
    events.close()
    assert trace is not None
    assert "at::native::norm_of_a_rows()" in trace.names
    assert "cuLaunchKernel" in trace.names


def test_calls_reach_the_disk_though_nobody_asks(cuda: Any, tmp_path: Path) -> None:
    events, source = PythonEvents(tmp_path), cupti.Cupti()
    source.start(events)
    before = os.path.getsize(source.files[0])
    cuda.call(LAUNCH, c.c_uint64(10))
    until = time.monotonic() + 300
    while os.path.getsize(source.files[0]) == before and time.monotonic() < until:
        time.sleep(0.005)
    written = os.path.getsize(source.files[0]) - before
    source.stop()
    events.close()
    assert written == 64


def test_where_cupti_refuses_torch_profiler_records(cuda: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> None:
        raise library.RefusedError("it has another client")

    monkeypatch.setattr(library, "start", refuse)
    events, source = PythonEvents(tmp_path), cupti.Cupti()
    source.start(events)
    source.stop()
    events.close()
    assert not source.files
    assert len(list(tmp_path.iterdir())) == 1  # what Python saw


@pytest.mark.parametrize("failure", [library.RefusedError, AttributeError])
def test_a_cupti_that_refuses_half_way_writes_into_no_other_file(
    cuda: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: type[Exception]
) -> None:
    ask = library._ask

    def refuse(name: str, *arguments: Any) -> None:
        if name == "cuptiEnableCallback":
            raise failure(name)
        ask(name, *arguments)

    monkeypatch.setattr(library, "_ask", refuse)
    events, source = PythonEvents(tmp_path), cupti.Cupti()
    source.start(events)
    with open(tmp_path / "other", "wb") as other:  # the system gives it the number of the file that was closed
        cuda.kernel(1, 7, c.c_uint64(10), c.c_char_p(NAME))
        cuda.cuptiActivityFlushAll(1)
    source.stop()
    events.close()
    assert not source.files
    assert not os.path.getsize(other.name)


def test_operators_are_torch_profilers(cuda: Any, tmp_path: Path) -> None:
    events, source = PythonEvents(tmp_path), cupti.Cupti()
    events.operators_wanted += 1
    source.start(events)
    assert not source.files
    events.close()


def test_a_profiler_of_the_program_ends_it(cuda: Any, tmp_path: Path) -> None:
    events, source, name = PythonEvents(tmp_path), cupti.Cupti(), c.c_char_p(NAME)
    source.start(events)
    work(cuda, name)
    for serving in torch_profiler.serving.copy():
        serving.give_way(object())
    work(cuda, name)
    source.boundary()
    source.stop()
    trace, meta = recorded(events, source)
    events.close()
    assert len(trace.rows(Kind.KERNEL)) == 1
    assert any("profiler of its own" in note for note in meta["notes"])


def test_calls_stand_at_the_lines_that_make_them(cuda: Any, tmp_path: Path) -> None:
    events, source, name = PythonEvents(tmp_path), cupti.Cupti(), c.c_char_p(NAME)
    source.start(events)
    work(cuda, name)
    source.stop()
    builder = Builder()
    events.add(builder, events.began)
    source.add(builder, events.began)
    events.close()
    trace = builder.trace()
    first = work.__code__.co_firstlineno
    calls = [event for event in trace if event.kind == Kind.CALL]
    if lines.library() is None:
        pytest.skip("no compiler, or an interpreter whose frames nobody knows")
    assert [call.place and call.place.line - first for call in calls[:5]] == [3, 4, 5, 6, 7]
    assert {(Path(call.place.path).name, call.function) for call in calls[:5] if call.place} == {
        ("test_cupti.py", "work")
    }
