import json

import pytest
from analysis.drawn import Device
from effort import some

from syncscope import kineto
from syncscope.analysis.data_sheets import ceilings_of
from syncscope.analysis.roofline import Ceilings, roofline
from syncscope.analysis.summary import summarize
from syncscope.model.report import step_lengths
from syncscope.model.trace import Event, Kind, Lane, Trace

GB, TFLOPS = 10**9, 10**12


def recording(op, shapes, types, ns, kernel="k"):
    detail = json.dumps({"Input Dims": shapes, "Input type": types})
    lane = Lane(1, 1)
    return Trace.of(
        [
            Event(Kind.OP, op, lane, 0, 100, external=4, detail=detail),
            Event(Kind.CALL, "cudaLaunchKernel", lane, 10, 10, correlation=1, external=4),
            Event(Kind.KERNEL, kernel, Lane(0, 7, 0), 50, ns, correlation=1, external=4),
        ]
    )


def test_the_nearer_ceiling_bounds():
    ceilings = Ceilings(100 * GB, 1 * TFLOPS)
    (row,) = roofline(recording("aten::mm", [[1000, 1000], [1000, 1000]], ["float"] * 2, 4_000_000), ceilings).rows
    assert row.bound == "arithmetic"
    assert row.reached == pytest.approx(0.5)  # 2e9 operations in 4 ms are 0.5 TFLOPS
    (row,) = roofline(recording("aten::relu", [[10**7]], ["float"], 1_000_000), ceilings).rows
    assert row.bound == "memory"
    assert row.reached == pytest.approx(0.8)  # 80 MB in 1 ms


def test_the_tensor_that_out_names_is_written_and_not_read():
    """A kernel says of how many tensors it has pointers; of an operator's arguments nobody could tell."""
    kernel = (
        "void at::native::vectorized_elementwise_kernel<4, AUnaryFunctor<float>, at::detail::Array<char*, 2> >(int)"
    )
    ceilings = Ceilings(100 * GB, 1 * TFLOPS)
    shapes, types = [[10**7], [], [10**7]], ["float", "double", "float"]
    (row,) = roofline(recording("aten::mul", shapes, types, 1_000_000, kernel), ceilings).rows
    assert row.bytes == 2 * 4e7
    (row,) = roofline(recording("aten::mul", shapes, types, 1_000_000, kernel.replace("*, 2", "*, 3")), ceilings).rows
    assert row.bytes == 3 * 4e7
    assert (row.reached, row.why) == (pytest.approx(1.2), "data stayed in a cache")


@pytest.mark.parametrize(
    "name", some(["a100_train_ddp8_rank3_60reads", "v100_resnet50_train_workers0_6steps.pt.trace"])
)
def test_what_of_a_real_recording_reaches_more_than_all_has_a_reason(name, shared):
    trace = kineto.read(shared / "traces" / f"{name}.json.gz")
    found = roofline(trace, ceilings_of(trace.meta["devices"][0]["name"]))
    above = [row for row in found.rows if row.reached > 1]
    assert {row.why for row in above} <= {
        "data stayed in a cache",
        "Winograd's way takes fewer operations than are counted",
    }
    assert max(row.bandwidth_share for row in found.rows if row.time > 1_000_000) < 1
    assert max(row.flops_share for row in found.rows) < 1.75
    assert found.total.reached < 1


def test_a_step_is_held_against_what_its_length_allows():
    trace = recording("aten::mm", [[1000, 1000], [1000, 1000]], ["float"] * 2, 4_000_000)
    step = Event(Kind.STEP, "ProfilerStep#3", Lane(1, 1), 0, 8_000_000)
    (row,) = roofline(Trace.of([*trace, step]), Ceilings(100 * GB, 1 * TFLOPS)).steps
    assert row.op == "step 3"
    assert row.flops_share == pytest.approx(0.25)


def test_unknown_work_is_said_to_be_unknown():
    found = roofline(recording("aten::cudnn_convolution", [], [], 1000), Ceilings(GB, TFLOPS))
    assert found.rows[0].bound == ""
    assert found.known == 0


def test_no_operator_of_a_real_recording_beats_its_device(shared):
    trace = kineto.read(shared / "traces" / "h100_owlv2_infer_stacks_80syncs.json.gz")
    found = roofline(trace, Ceilings(3350 * GB, 989 * TFLOPS))
    large = [row for row in found.rows if row.time > 1_000_000]
    assert found.known > 0.5
    assert 0.3 < max(row.flops_share for row in large) <= 1
    assert sum(row.time for row in found.rows) == found.total.time


def test_the_arithmetic_of_a_real_training_step_is_what_is_known_of_the_network(shared):
    """ResNet-50: 4.09e9 multiply-adds an image forward, twice that backward, except for the gradient of the image."""
    trace = kineto.read(shared / "traces" / "v100_resnet50_train_workers0_6steps.pt.trace.json.gz")
    found = roofline(trace, Ceilings(900 * GB, 15.7 * TFLOPS))
    batch, forward, first = 32, 4_089_184_256, 118_013_952
    expected = 2 * batch * (3 * forward - first)
    assert len(found.steps) == 6
    for step in found.steps:
        assert step.flops_share * 15.7 * TFLOPS * step.time / 1e9 == pytest.approx(expected, rel=1e-4)
    assert found.known > 0.99
    assert 0.6 < found.counted < 0.7


def test_steps_are_as_long_as_in_a_report_where_the_host_runs_ahead():
    """The host asks for eight steps of 5 ms in a moment; the device is done with each 5 ms after the one before."""
    program = [[("work", 200_000), ("launch", 0, 5_000_000)]] * 8
    trace = Device().run(program)[0]
    marked = trace.duration[trace.rows(Kind.STEP)]
    assert marked.max() < 1_000_000
    steps = roofline(trace, Ceilings(GB, TFLOPS)).steps
    assert [row.time for row in steps] == step_lengths(summarize(trace).steps)
    assert [row.count for row in steps] == [0] * 8, "no operator was recorded"
    assert min(row.time for row in steps[1:]) > 4_900_000


def test_a_loader_between_two_steps_is_of_the_later_one():
    lane = Lane(1, 1)
    step = Event(Kind.STEP, "ProfilerStep#4", lane, 20_000_000, 8_000_000)
    trace = recording("aten::mm", [[1000, 1000], [1000, 1000]], ["float"] * 2, 4_000_000)
    before, op = (
        Event(Kind.STEP, "ProfilerStep#3", lane, 0, 8_000_000),
        Event(Kind.OP, "aten::add", lane, 20_000_100, 100),
    )
    found = roofline(Trace.of([*trace, before, step, op]), Ceilings(GB, TFLOPS))
    assert [row.time for row in found.steps] == [8_000_000, 20_000_000]
