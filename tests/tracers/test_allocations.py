"""Allocations of our own device in a recording, and of a CUDA that says what torch's would."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from in_c import in_c

torch = pytest.importorskip("torch")
pytest.importorskip("pyopencl")
pytestmark = pytest.mark.usefixtures("unlinted")

import syncscope  # noqa: E402
from syncscope.kernels import memory  # noqa: E402 - registers the device
from syncscope.tracers.columns import Builder  # noqa: E402
from syncscope.tracers.hooks import listening  # noqa: E402
from syncscope.tracers.hooks.listeners import Listener  # noqa: E402
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


@in_c
def test_what_a_backward_pass_allocates_is_of_the_line_that_called_it():
    x = torch.rand(500, device="ocl", requires_grad=True)
    with syncscope.trace(memory=True) as trace:
        loss = (x * 3).exp().sum()
        loss.backward()  # backward
    assert (2000, line_of("# backward")) in rows(trace.trace)


def test_a_backward_pass_that_is_planned_in_c_goes_on_and_is_of_its_line():
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Conv2d(4, 2, 3)).to("ocl")
    x = torch.rand(2, 3, 8, 8, device="ocl")
    with syncscope.trace(memory=True) as trace:
        for _ in range(6):
            network(x).sum().backward()  # planned
            trace.step()
    steps = [e for e in rows(trace.trace) if e[1] == line_of("# planned")]
    assert len(steps) > 6


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


class Cuda:
    """What torch says of CUDA's memory, in the form of `torch.cuda.memory._snapshot()`; on a GPU tests/on_cuda asks torch."""

    def __init__(self, keeps, monkeypatch):
        self.keeps, self.asked = keeps, []
        self.events, self.source, self.builder = PythonEvents(), Memory(), Builder()
        self.events.memory_wanted = 1
        self.entries = [self.entry("alloc", -5, 32)] if keeps else []  # of the program, before we came
        stats = {"requested_bytes.all.current": 1000, "reserved_bytes.all.current": 4096}
        cuda = SimpleNamespace(memory=self, device_count=lambda: 1, memory_stats=lambda device: stats)
        monkeypatch.setattr(torch, "cuda", cuda)
        monkeypatch.setattr(torch._C, "_cuda_isHistoryEnabled", lambda: self.keeps, raising=False)
        monkeypatch.setattr(torch._C, "_cuda_record_memory_history", self._set, raising=False)
        monkeypatch.setattr("syncscope.tracers.sources.torch_profiler.wanted", lambda: True)

    def entry(self, action, ms, size, *frames):
        at = self.events.began_unix // 1000 + 1000 * ms
        return {"stream": 0, "addr": 5, "frames": list(frames), "action": action, "size": size, "time_us": at}

    def _set(self, enabled):
        self.asked.append(enabled)
        self.keeps = enabled is not None
        self.entries = self.entries if self.keeps else []

    def _record_memory_history(self, enabled="all", **how):
        torch._C._cuda_record_memory_history(enabled)

    def _snapshot(self):
        return {"device_traces": [self.entries.copy()]}

    def works(self, ms, size):
        here, library = ({"filename": path, "line": 7, "name": "f"} for path in (HERE, torch.__file__))
        self.entries += [
            self.entry("segment_alloc", ms, 2048),
            self.entry("alloc", ms, size, library, here),
            self.entry("free_requested", ms, size),
            self.entry("free_completed", ms, size),
        ]

    def ended(self):
        self.source.stop()
        notes = self.source.add(self.builder, self.events.began)["notes"]
        self.events.close()
        for file in self.events.files:
            file.unlink()
        return self.builder.trace(), notes


@pytest.fixture(params=[False, True], ids=["ours", "the program's"])
def cuda(request, monkeypatch):
    return Cuda(request.param, monkeypatch)


def test_what_cuda_keeps_becomes_allocations_and_a_history_of_the_programs_stays(cuda):
    kept = cuda.keeps
    cuda.source.start(cuda.events)
    cuda.works(1000, 64)
    trace, notes = cuda.ended()
    assert trace.memory.bytes.tolist() == [64, -64]
    assert trace.memory.total.tolist() == [1064, 1000]
    assert [trace.places[n].line for n in trace.memory.place.tolist() if n >= 0] == [7]
    assert notes == []
    assert cuda.keeps == kept
    assert cuda.asked == ([] if kept else ["all", None])


def test_a_program_that_sets_the_history_itself_gets_it(cuda):
    cuda.source.start(cuda.events)
    with listening(Listener(read=lambda record: None)):
        cuda.works(1000, 64)
        torch.cuda.memory._record_memory_history(enabled=None)
        torch.cuda.memory._record_memory_history("state")
        cuda.works(2000, 128)
        trace, notes = cuda.ended()
    assert trace.memory.bytes.tolist() == [64, -64]
    assert len(notes) == 1
    assert cuda.keeps
    assert len(cuda.entries) == 4
