"""What a recording of our own device tells of the shapes of its operators, in the words of torch.profiler."""

import gc
import json
import weakref

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pyopencl")

import syncscope  # noqa: E402
import syncscope.kernels  # noqa: E402 - registers the device
from syncscope import kineto  # noqa: E402
from syncscope.analysis.op_costs import SIZES  # noqa: E402
from syncscope.analysis.roofline import Ceilings, roofline  # noqa: E402
from syncscope.model.trace import Kind  # noqa: E402
from syncscope.tracers.session import Session  # noqa: E402
from syncscope.tracers.shapes import MOST, Shapes  # noqa: E402


def told(trace, name):
    """The details of the operators of this name."""
    found = [json.loads(e.detail) for e in trace if e.kind == Kind.OP and e.name == name]
    assert found, trace.meta["notes"]
    return found


def test_an_operator_tells_shapes_and_types_as_the_profiler_does():
    a, b = torch.ones(2, 3, device="ocl"), torch.ones(3, 5, device="ocl")
    picked = torch.tensor([0, 1], device="ocl")
    with Session(record_shapes=True) as session:
        a @ b
        torch.cat([a, a])
        torch.add(a, 1, out=a)
        a[picked]
        a.mul_(a)
        torch.cat([a, a[:1]])
    trace = session.trace
    assert told(trace, "aten::mm") == [
        {
            "Input Dims": [[2, 3], [3, 5]],
            "Input type": ["float", "float"],
            "Output Dims": [[2, 5]],
            "Output type": ["float"],
        }
    ]
    assert told(trace, "aten::mul_") == [
        {
            "Input Dims": [[2, 3], [2, 3]],
            "Input type": ["float", "float"],
            "Output Dims": [[2, 3]],
            "Output type": ["float"],
        }
    ]
    cats = told(trace, "aten::cat")
    assert [cat["Input Dims"][0] for cat in cats] == [[[2, 3], [2, 3]], [[2, 3], [1, 3]]]
    assert [cat["Output Dims"] for cat in cats] == [[[4, 3]], [[3, 3]]]
    (index,) = told(trace, "aten::index")
    assert (index["Input Dims"], index["Input type"]) == ([[2, 3], [[2]]], ["float", ["long int"]])


def test_shapes_survive_the_file_and_stand_where_viewers_look(tmp_path):
    a = torch.ones(4, 4, device="ocl")
    with Session(record_shapes=True) as session:
        a @ a
    kineto.save(session.trace, tmp_path / "run.json")
    assert kineto.read(tmp_path / "run.json") == session.trace
    events = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    (mm,) = (e for e in events if e["name"] == "aten::mm")
    assert mm["args"]["Input Dims"] == [[4, 4], [4, 4]]
    assert mm["args"]["Input type"] == ["float", "float"]


def test_looking_keeps_no_memory():
    a = torch.ones(4, 4, device="ocl")
    with Session(record_shapes=True):
        storage = weakref.ref((a @ a).untyped_storage())
        gc.collect()
        assert storage() is None


def test_a_recording_of_nothing_but_calls_that_are_known_is_kept():
    from syncscope.kernels import queue

    a = torch.ones(4, 4, device="ocl")
    queue.observers.append(nobody := lambda *_: None)  # the queue keeps times already: nothing is asked of Python again
    try:
        for _ in range(4):
            a @ a
        with Session(record_shapes=True) as session:
            for _ in range(2):
                a @ a
    finally:
        queue.observers.remove(nobody)
    assert [event.name for event in session.trace if event.name == "aten::mm"] == ["aten::mm"] * 2


def test_shapes_that_follow_the_data_do_not_fill_the_memory():
    said = []
    shapes = Shapes(lambda text: said.append(text) or len(said))
    x = torch.ones(MOST + 2, device="meta")
    numbers = [shapes.number("aten::neg", (x[:n],), {}, None) for n in range(1, MOST + 3)]
    assert len(said) == MOST
    assert numbers[-1] == 0
    assert shapes.number("aten::neg", (x[:7],), {}, None) == 7


def test_every_type_the_device_stores_has_a_known_size():
    said = []
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
                  torch.int8, torch.uint8, torch.bool, torch.complex64):  # fmt: skip
        Shapes(lambda text: said.append(json.loads(text)) or 1).number(
            "aten::neg", (torch.ones(1, dtype=dtype),), {}, None
        )
        assert SIZES[said[-1]["Input type"][0]] == dtype.itemsize


def test_a_recorded_training_step_does_the_arithmetic_that_torch_counts():
    from torch.utils.flop_counter import FlopCounterMode

    def step(device):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, padding=1),
            torch.nn.ReLU(),
            torch.nn.Conv2d(8, 6, 3, stride=2),
            torch.nn.ConvTranspose2d(6, 4, 2, stride=2),
            torch.nn.Flatten(),
            torch.nn.Linear(4 * 6 * 6, 5),
        ).to(device)
        model(torch.ones(2, 3, 8, 8, device=device)).square().mean().backward()

    with FlopCounterMode(display=False) as counter:
        step("cpu")
    with syncscope.trace(record_shapes=True) as trace:
        step("ocl")
    found = roofline(trace.trace, Ceilings(1e9, 1e9))
    assert found.total.flops == counter.get_total_flops(), trace.trace.meta["notes"]
    assert found.known == pytest.approx(1, abs=0.01)


def test_shapes_may_be_wanted_for_a_part_of_a_recording():
    a = torch.ones(2, device="ocl")
    with Session() as outer:
        a + 1
        with Session(record_shapes=True) as inner:
            a * 2
        a - 1
    names = [e.name for e in outer.trace if e.kind == Kind.OP]
    assert [names.count(f"aten::{name}") for name in ("add", "mul", "sub")] == [1, 1, 1]
    assert told(inner.trace, "aten::mul") == told(outer.trace, "aten::mul")
    assert told(inner.trace, "aten::mul")[0]["Input Dims"] == [[2], []]
