"""The calls of modules in a recording."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pyopencl")
pytestmark = pytest.mark.usefixtures("unlinted")

import syncscope  # noqa: E402
import syncscope.kernels  # noqa: E402 - registers the device
from syncscope import api  # noqa: E402
from syncscope.model.trace import Kind  # noqa: E402


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())

    def forward(self, x, fails=False):
        y = self.layers(x)
        if fails:
            raise RuntimeError("on purpose")
        return y.sum()


def regions(trace):
    return [event.name for event in trace if event.kind == Kind.ANNOTATION and event.name.startswith("nn.Module: ")]


NAMES = ["nn.Module: model", "nn.Module: model.layers", "nn.Module: model.layers.0", "nn.Module: model.layers.1"]


def test_each_call_of_a_module_is_a_region_with_its_path_where_operators_are_wanted():
    model, x = Net().to("ocl"), torch.rand(4, 8, device="ocl")
    with syncscope.trace(operators=True) as trace:
        model(x)
        with pytest.raises(RuntimeError, match="on purpose"):
            model(x, fails=True)
    assert sorted(regions(trace.trace)) == sorted(2 * NAMES)
    found = api.with_work(trace.report(show=False)).work.modules
    assert [line.path[-1] for line in found] == ["model", "model.layers", "model.layers.0", "model.layers.1"]
    assert found[0].time == pytest.approx(sum(line.own for line in found))
    assert not torch.nn.modules.module._global_forward_hooks
    assert not torch.nn.modules.module._global_forward_pre_hooks


def test_otherwise_nothing_is_heard_of_modules():
    model, x = Net().to("ocl"), torch.rand(4, 8, device="ocl")
    with syncscope.trace() as trace:
        model(x)
        assert not torch.nn.modules.module._global_forward_hooks
    assert regions(trace.trace) == []


def test_a_compiled_model_is_traced_as_without_us():
    model, x = Net(), torch.rand(4, 8)
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    compiled = torch.compile(model, backend=backend, fullgraph=True)
    with syncscope.trace(operators=True):
        assert torch.equal(compiled(x), model(x))
    assert len(graphs) == 1
