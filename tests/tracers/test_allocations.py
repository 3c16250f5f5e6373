"""Allocations of our own device in a recording, and of a CUDA that says what torch's would."""

from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pyopencl")

import syncscope  # noqa: E402
from syncscope.kernels import memory  # noqa: E402 - registers the device
from syncscope.tracers.columns import Builder  # noqa: E402
from syncscope.tracers.python_events import PythonEvents  # noqa: E402
from syncscope.tracers.sources.memory import Memory  # noqa: E402

HERE = __file__


def line_of(text: str) -> int:
    lines = Path(HERE).read_text(encoding="utf-8").split("\n")
    return next(n for n, line in enumerate(lines, 1) if text in line and "line_of" not in line)


def rows(trace):
    """`(bytes, line)` of each allocation, the line 0 where there is none."""
    found = trace.memory
    places = [trace.places[n] if n >= 0 else None for n in found.place.tolist()]
    here = [place.line if place and place.path == HERE else 0 for place in places]
    return list(zip(found.bytes.tolist(), here, strict=True))


def test_each_allocation_has_its_line_and_each_free_its_size():
    kept = torch.zeros(100, device="ocl")
    with syncscope.trace(memory=True) as trace:
        x = torch.zeros(1000, device="ocl")  # x
        y = torch.nn.functional.relu(x)  # y
        del x
        z = kept * 2  # z
    found = rows(trace.trace)
    assert (4000, line_of("# x")) in found
    assert (4000, line_of("# y")) in found
    assert (400, line_of("# z")) in found
    assert (-4000, 0) in found
    assert trace.trace.memory.total[-1] == memory.in_use
    assert memory.told is None
    (use,) = trace.report(show=False).memory
    assert use.before >= 400
    assert use.peak >= use.before + 8000
    assert HERE.endswith(use.made_by.place.path)
    del y, z


def test_what_a_backward_pass_allocates_is_of_the_line_that_called_it():
    x = torch.rand(500, device="ocl", requires_grad=True)
    with syncscope.trace(memory=True) as trace:
        loss = (x * 3).exp().sum()
        loss.backward()  # backward
    assert (2000, line_of("# backward")) in rows(trace.trace)


def test_it_is_recorded_only_where_it_is_asked_for_and_only_in_its_window(tmp_path):
    with syncscope.trace() as trace:
        torch.zeros(10, device="ocl")
    assert trace.trace.memory is None
    with syncscope.trace(memory=True, wait=1, active=1) as trace:
        for size in (1111, 2222, 3333):
            torch.zeros(size, device="ocl")
            trace.step()
    sizes = {size for size, _ in rows(trace.trace)}
    assert 8888 in sizes
    assert not {4444, 13332} & sizes
    file = tmp_path / "memory.json.gz"
    trace.save(file)
    assert syncscope.report(file).memory == trace.report(show=False).memory


def test_what_cuda_keeps_becomes_allocations(monkeypatch):
    """The form of `torch.cuda.memory._snapshot()`; on a GPU tests/on_cuda asks torch itself."""
    asked = []
    here = {"filename": HERE, "line": 7, "name": "f"}
    library = {"filename": torch.__file__, "line": 1, "name": "g"}

    def snapshot():
        at = events.began_unix // 1000
        entry = {"stream": 0, "addr": 5, "size": 64, "frames": []}
        return {
            "device_traces": [
                [
                    entry | {"action": "segment_alloc", "size": 2048, "time_us": at + 1},
                    entry | {"action": "alloc", "time_us": at + 2, "frames": [library, here]},
                    entry | {"action": "free_requested", "time_us": at + 4},
                    entry | {"action": "free_completed", "time_us": at + 5},
                ]
            ]
        }

    history = SimpleNamespace(_record_memory_history=lambda **how: asked.append(how), _snapshot=snapshot)
    stats = {"requested_bytes.all.current": 1000, "reserved_bytes.all.current": 4096}
    cuda = SimpleNamespace(memory=history, device_count=lambda: 1, memory_stats=lambda device: stats)
    monkeypatch.setattr(torch, "cuda", cuda)
    monkeypatch.setattr("syncscope.tracers.sources.torch_profiler.wanted", lambda: True)
    events, source, builder = PythonEvents(), Memory(), Builder()
    events.memory_wanted = 1
    try:
        source.start(events)
        source.stop()
    finally:
        events.close()
        for file in events.files:
            file.unlink()
    assert asked == [{"context": "alloc", "stacks": "python"}, {"enabled": None}]
    assert source.add(builder, events.began) == {}
    trace = builder.trace()
    assert rows(trace) == [(64, 7), (-64, 0)]
    assert trace.memory.total.tolist() == [1064, 1000]
    assert trace.memory.reserved.tolist() == [6144, 6144]
    assert 1000 < trace.memory.time[0] <= 2000
