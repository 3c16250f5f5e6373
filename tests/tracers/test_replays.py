"""A recording of replayed steps: every kernel has its operator and line, every step is one, and the wait is where it is."""

import gc
import gzip
import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pyopencl")
pytestmark = pytest.mark.usefixtures("unlinted")

import syncscope  # noqa: E402
import syncscope.kernels  # noqa: E402 - registers the device

LINES = Path(__file__).read_text(encoding="utf-8").split("\n")


def line_of(text):
    return next(n for n, line in enumerate(LINES, 1) if text in line and "line_of" not in line)


def test_kernels_and_steps_of_replays_have_names(tmp_path):
    weight = torch.nn.Parameter(torch.ones(8, 8, device="ocl"))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    x = torch.ones(4, 8, device="ocl")

    def step():
        optimizer.zero_grad()
        loss = (x @ weight).square().mean()  # forward
        loss.backward()  # backward
        optimizer.step()  # update
        return loss

    graph = torch.ocl.capture(step)
    with syncscope.trace() as trace:
        for _ in range(4):
            graph.replay()
            graph.result.item()  # read
    (path,) = [file for file in trace.save(tmp_path) if file.name.endswith(".json.gz")]
    events = [event for event in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"] if "cat" in event]
    operators = {event["args"].get("External id"): event["name"] for event in events if event["cat"] == "cpu_op"}
    kernels = [(e["name"], operators.get(e["args"].get("External id"), "")) for e in events if e["cat"] == "kernel"]
    assert len({name for name, _ in kernels}) > 3
    assert [kernel for kernel in kernels if "(captured at " not in kernel[1]] == []
    ends = {operator.rpartition(":")[2] for _, operator in kernels}
    assert ends == {f"{line_of(part)})" for part in ("# forward", "# backward", "# update")}
    assert any(name.startswith("gemm") and "aten::mm " in operator for name, operator in kernels)
    assert sum(event["name"].startswith("ProfilerStep#") for event in events) >= 4
    (line,) = trace.report(show=False).lines
    assert line.place.line == line_of("# read")


def test_a_graph_keeps_the_optimizer_whose_steps_it_replays():
    def made():
        weight = torch.nn.Parameter(torch.ones(8, 8, device="ocl"))
        optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
        weight.grad = torch.ones_like(weight)
        return torch.ocl.capture(optimizer.step), weight

    graph, weight = made()
    gc.collect()
    with syncscope.trace() as trace:
        for _ in range(3):
            graph.replay()
    assert trace.count == 3
    torch.testing.assert_close(weight.cpu(), torch.full((8, 8), reference(6)))


def reference(steps):
    """A parameter of 1 after so many steps of momentum with a gradient of 1."""
    value, momentum = 1.0, 0.0
    for _ in range(steps):
        momentum = 0.9 * momentum + 1
        value -= 0.1 * momentum
    return value
