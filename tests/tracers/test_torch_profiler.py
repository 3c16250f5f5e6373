"""The way through torch.profiler: recordings of the CPU, and traces recorded on GPUs put onto our clock."""

import functools
import gc
import json
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

from syncscope import kineto
from syncscope.analysis.reads import reads
from syncscope.analysis.waits import launches, waits
from syncscope.model.source import Place
from syncscope.model.trace import DEVICE, Event, Kind, Lane, Trace
from syncscope.tracers.columns import Builder
from syncscope.tracers.sources import torch_profiler

torch = pytest.importorskip("torch")


def test_operators_land_on_our_clock() -> None:
    recording = torch_profiler.TorchProfiler(host_only=True)
    origin = time.monotonic_ns()
    recording.begin()
    time.sleep(0.02)
    before = time.monotonic_ns()
    torch.ones(64, 64) @ torch.ones(64, 64)
    after = time.monotonic_ns()
    recording.stop()
    builder = Builder()
    meta = recording.add(builder, origin)
    trace = builder.trace()
    assert meta["notes"] == []
    uncertainty = meta["clocks"]["torch.profiler"]["uncertainty_ns"] + 5_000_000
    mm = next(e for e in trace if e.name == "aten::mm")
    assert before - uncertainty <= mm.start + origin <= mm.end + origin <= after + uncertainty
    assert (
        torch_profiler.ANCHOR not in trace.names or not (trace.name == trace.names.index(torch_profiler.ANCHOR)).any()
    )


def test_a_profiler_that_runs_already_is_left_alone() -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        ours = torch_profiler.TorchProfiler(host_only=True)
        ours.begin()
        torch.ones(2) + 1
        ours.stop()
    assert "was running already" in ours.notes[0]
    assert any(event.key == "aten::add" for event in theirs.key_averages())


def test_what_the_profiler_recorded_is_gone_when_it_ends() -> None:
    """Not when Python next looks for garbage, which would be in some later step."""
    gc.collect()
    gc.disable()
    try:
        recording = torch_profiler.TorchProfiler(host_only=True)
        recording.begin()
        ended = weakref.ref(recording._profiler)
        recording.stop()
        assert ended() is None
    finally:
        gc.enable()


def test_a_profiler_of_the_program_gets_its_way(tmp_path: Path) -> None:
    from syncscope.tracers.session import Session

    with Session():
        ours = torch_profiler.TorchProfiler(host_only=True)
        ours.begin()
        torch.ones(2) * 2
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
            torch.ones(2) + 1
        ours.stop()
    assert "started a profiler of its own" in ours.notes[0]
    assert any(event.key == "aten::add" for event in theirs.key_averages())
    builder = Builder()
    ours.add(builder, 0)
    assert "aten::mul" in builder.trace().names


def test_a_whole_recording_through_torch_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, but for the device: operators of torch.profiler around the lines of our own recorder, step by step."""
    from syncscope.tracers.guard import dry_if
    from syncscope.tracers.session import Session

    monkeypatch.setattr(torch_profiler, "wanted", lambda: True)
    monkeypatch.setattr(torch_profiler, "SOURCE", functools.partial(torch_profiler.TorchProfiler, host_only=True))
    x = torch.ones(8, requires_grad=True)
    with dry_if(True), Session(wait=1, active=2) as session:
        for _ in range(3):
            (x * 2).sum().item()
            time.sleep(0.02)  # so that neighbours cannot be taken for one another
            session.step()
    trace = session.trace
    reads = [e for e in trace if e.kind == Kind.READ]
    inside = [e for e in trace if e.name == "aten::item"]
    steps = [e for e in trace if e.kind == Kind.STEP]
    assert len(reads) == len(inside) == len(steps) == 2
    slack = trace.meta["clocks"]["torch.profiler"]["uncertainty_ns"] + 5_000_000  # a busy machine stops us anywhere
    for step, read, item in zip(steps, reads, inside, strict=True):
        assert step.start <= read.start <= read.end <= step.end
        assert read.start - slack <= item.start <= item.end <= read.end + slack
        assert read.lane.thread == item.lane.thread
        assert read.place is not None


@pytest.mark.parametrize(
    "name",
    [
        "a100_alexnet_cuda_sync_events.json.gz",
        "mi250_minitoy_train.json.gz",
        pytest.param("v100_resnet50_train_workers0_6steps.pt.trace.json.gz", marks=pytest.mark.slow),  # the largest
    ],
)
def test_traces_of_gpus_join_our_lines_by_thread_and_time(shared: Path, name: str) -> None:
    """As if our recorder had run beside: the program's waits get the line of the read that we noted around each."""
    theirs = kineto.read(shared / "traces" / name)
    lane = next(e.lane for e in theirs if e.kind == Kind.CALL)
    first, last = int(theirs.start.min()), int(theirs.end.max())
    regions = [Event(Kind.ANNOTATION, torch_profiler.ANCHOR, lane, at, 1000) for at in (first, last)]
    with_anchor = Trace.of([*regions, *theirs], **theirs.meta)
    origin = 5_000_000_000
    anchors = [torch_profiler.Anchor(origin + at - first - 100, origin + at - first + 1100) for at in (first, last)]
    stops = [e for e in theirs if e.kind == Kind.CALL and e.lane == lane and e.name.endswith("StreamSynchronize")]
    place = Place("train.py", 7)
    builder = Builder()
    ours = Lane(lane.process, lane.thread, label="MainThread")
    builder.add_events(
        Event(Kind.READ, "item", ours, e.start - first - 500, e.duration + 1000, place=place, column=4) for e in stops
    )
    meta = torch_profiler.add_trace(builder, with_anchor, origin, anchors)
    assert meta["clocks"]["torch.profiler"]["uncertainty_ns"] <= 100
    joined = builder.trace(**meta)
    assert len(joined) == len(theirs) + len(stops) - int((theirs.kind == Kind.STEP).sum())
    assert int(np.isin(joined.kind, DEVICE).sum()) == int(np.isin(theirs.kind, DEVICE).sum()) > 0
    calls = joined.correlation[(joined.kind == Kind.CALL) & (joined.correlation >= 0)]
    work = joined.correlation[np.isin(joined.kind, DEVICE)]
    linked = np.isin(work, calls).mean()
    before = np.isin(
        theirs.correlation[np.isin(theirs.kind, DEVICE)], theirs.correlation[theirs.kind == Kind.CALL]
    ).mean()
    assert linked == before > 0.9
    assert calls.min() >= torch_profiler.OFFSET
    assert kineto.read(kineto.write(joined)) == joined
    launched = launches(joined)
    found = reads(joined, waits(joined, launched), launched)
    known = [read for read in found if read.place == place]
    assert len(known) == len({e.start for e in stops})
    assert all(read.thread == lane.thread and read.op == "item" for read in known)


@pytest.mark.parametrize("drift", [0, 40])
def test_the_profilers_clock_is_found_between_two_readings_of_ours(drift: int) -> None:
    """The first region takes long, as it does; the others are short. A clock may run a little fast or slow."""
    lane, ago = Lane(1, 1), 123_456_789

    def theirs(at: int) -> int:
        return at + ago + at * drift // 1_000_000

    moments = [1000, *range(1_000_000, 2_000_000_000, 10_000_000)]
    widths = [200_000, *(3000 for _ in moments[1:])]
    events = [
        Event(Kind.ANNOTATION, torch_profiler.ANCHOR, lane, theirs(at) + width // 3, width // 3)
        for at, width in zip(moments, widths, strict=True)
    ]
    middle = 777_777_777
    events.append(Event(Kind.OP, "aten::item", lane, theirs(middle), 10))
    builder = Builder()
    anchors = [torch_profiler.Anchor(at, at + width) for at, width in zip(moments, widths, strict=True)]
    meta = torch_profiler.add_trace(builder, Trace.of(events), 0, anchors)
    (found,) = builder.trace()
    assert abs(found.start - middle) <= 2000
    assert meta["clocks"]["torch.profiler"]["uncertainty_ns"] <= 1500
    assert abs(meta["clocks"]["torch.profiler"]["drift_ns_per_s"] - drift * 1000) < 500


def test_which_rank_of_a_job_it_is_is_kept() -> None:
    region = Event(Kind.ANNOTATION, torch_profiler.ANCHOR, Lane(1, 1), 0, 10)
    told = {"backend": "nccl", "rank": 0, "world_size": 2, "host": "another"}
    meta = torch_profiler.add_trace(Builder(), Trace.of([region], **told), 0, [torch_profiler.Anchor(0, 20)])
    assert {key: meta.get(key) for key in told} == told | {"host": None}


def test_no_events_no_trouble() -> None:
    builder = Builder()
    assert torch_profiler.add_trace(builder, Trace.of(()), 0, ()) == {}
    assert json.loads(json.dumps(builder.trace().meta)) == {}


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> int:
    """Both clocks stand at this moment: between two looks at them a busy machine may do other things for long."""
    now = time.monotonic_ns()
    for clock in ("time_ns", "monotonic_ns"):
        monkeypatch.setattr(torch_profiler, clock, lambda: now)
    return now


@pytest.mark.parametrize("others", [0, 3])
def test_without_operators_clocks_and_threads_meet_at_a_call_of_the_driver(others: int, still: int) -> None:
    """Kineto then calls threads by half of their POSIX number; the program may make the same call itself."""
    origin, ago = still, 7_654_321
    ours, theirs, second = Lane(1, 100), Lane(1, 1234567), Lane(1, 7654321)
    moments = [*range(1000, 9000, 2000), *range(10_000_000, 200_000_000, 10_000_000)]
    call = "cudaDeviceGetStreamPriorityRange"
    events = [Event(Kind.CALL, call, theirs, at + ago + 300, 500) for at in moments]
    events += [Event(Kind.CALL, call, theirs, 35_000_000 + ago + at, 500) for at in range(others)]
    events += [Event(Kind.CALL, "cudaStreamSynchronize", lane, 55_000_000 + ago, 10) for lane in (theirs, second)]
    anchors = [torch_profiler.Anchor(origin + at, origin + at + 1000, 100) for at in moments]
    builder = Builder()
    builder.add_events([Event(Kind.READ, "item", ours, 54_000_000, 2_000_000)])
    trace = Trace.of(events, origin_ns=origin - ago + 2500)  # to some us
    meta = torch_profiler.add_trace(builder, trace, origin, anchors, {7654321: 200})
    found = builder.trace()
    waits = {e.lane.thread: e.start for e in found if e.name == "cudaStreamSynchronize"}
    assert set(waits) == {100, 200}
    assert all(abs(at - 55_000_000) <= 1000 for at in waits.values())
    assert sum(e.name == call for e in found) == others
    assert meta["clocks"]["torch.profiler"]["uncertainty_ns"] <= 1500


def test_without_an_anchor_the_systems_clock_is_taken(still: int) -> None:
    builder = Builder()
    call = Event(Kind.CALL, "cudaLaunchKernel", Lane(1, 1), 5_000, 10)
    meta = torch_profiler.add_trace(builder, Trace.of([call], origin_ns=still + 1_000_000), still, [])
    assert meta["clocks"]["torch.profiler"]["source"] == "system"
    assert builder.trace()[0].start == 1_005_000


def test_threads_have_their_numbers() -> None:
    assert threading.get_native_id() in torch_profiler.thread_aliases().values()
