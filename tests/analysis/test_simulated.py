"""What the analysis says of programs that a simulated machine ran, against the same programs run without their waits."""

import numpy as np
import pytest
from effort import EFFORT, counts, draws
from simulated import US, Machine, random_program

from syncscope import kineto
from syncscope.analysis.event_graph import event_graph_of
from syncscope.analysis.fidelity import fidelity_of
from syncscope.analysis.price import timed_part
from syncscope.analysis.replay import replay

PROGRAMS = draws(25)  # of each family
ITEMS, SYNCS = ("item",), ("stream", "event", "device")
ALL = ITEMS + SYNCS
FAMILIES = {  # what the program does, and how the machine records it
    "values on one queue": ({"waits": ITEMS}, {}),
    "clock of the device ahead": ({"waits": ITEMS}, {"clock": 5 * US}),
    "clock of the device behind": ({"waits": ITEMS}, {"clock": -4 * US}),
    "hipMemcpyWithStream": ({"waits": ITEMS}, {"copies": "hip", "records": 0.0}),
    "hipMemcpyWithStream, clock ahead": ({"waits": ITEMS}, {"copies": "hip", "records": 0.0, "clock": 5 * US}),
    "hipMemcpyWithStream, clock unsteady": ({"waits": ITEMS}, {"copies": "hip", "records": 0.0, "jitter": 4 * US}),
    "hipMemcpyWithStream, two queues": (
        {"waits": ITEMS, "queues": 2},
        {"copies": "hip", "records": 0.0, "clock": 5 * US},
    ),
    "cudaMemcpy, clock ahead": ({"waits": ITEMS}, {"copies": "plain", "records": 0.0, "clock": 8 * US}),
    "waits without a copy": ({"waits": SYNCS}, {"records": 0.0}),
    "waits without a copy, clock ahead": ({"waits": SYNCS}, {"records": 0.0, "clock": 5 * US}),
    "uploads from pageable memory": ({"waits": (*ITEMS, "upload")}, {}),
    "uploads, two queues, clock ahead": ({"waits": (*ITEMS, "upload"), "queues": 2}, {"clock": 5 * US}),
    "two queues, records": ({"waits": ALL, "queues": 2}, {}),
    "two queues, no records": ({"waits": ALL, "queues": 2}, {"records": 0.0}),
    "two queues, no records, clock ahead": ({"waits": ALL, "queues": 2}, {"records": 0.0, "clock": 5 * US}),
    "edges, records": ({"waits": ALL, "queues": 2, "edges": "apart"}, {}),
    "edges, records without origins": ({"waits": ALL, "queues": 2, "edges": "apart"}, {"origins": False}),
    "edges, clock ahead": ({"waits": ALL, "queues": 2, "edges": "apart"}, {"clock": 4 * US}),
    "edges, clock behind": ({"waits": ALL, "queues": 2, "edges": "apart"}, {"clock": -4 * US}),
    "edges, half of the records": ({"waits": ALL, "queues": 2, "edges": "used"}, {"records": 0.5}),
    "edges, no records": ({"waits": ALL, "queues": 2, "edges": "used"}, {"records": 0.0}),
}


def told(machine, program):
    """An event graph of the recording that the machine made."""
    measured = machine.run(program)
    return event_graph_of(machine.trace()), measured


def error_of(machine, program):
    """Predicted without waits less true, in parts of a step as recorded."""
    event_graph, measured = told(machine, program)
    graph = event_graph.graph()
    window = timed_part(graph)
    predicted = window.of(replay(graph, range(len(graph.reads))))
    true = machine.run(program, waits=False)
    first, last = window.first, window.last
    return (predicted * window.steps - (true[last] - true[first])) / (measured[last] - measured[first])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_recording_of_torch_profiler_is_the_same_written_as_ours(family):
    what, how = FAMILIES[family]
    machine = Machine(0, **how)
    machine.run(random_program(0, **what))
    trace = machine.trace()
    assert kineto.read(kineto.write(trace)) == trace


@pytest.mark.parametrize("family", FAMILIES)
def test_a_step_without_waits_is_predicted(family):
    what, how = FAMILIES[family]
    errors = [abs(error_of(Machine(seed, **how), random_program(seed, **what))) for seed in range(PROGRAMS)]
    assert EFFORT < 1 or np.quantile(errors, 0.9) <= 0.01, sorted(errors)[-4:]  # of few it is the largest
    assert max(errors) <= 0.03, sorted(errors)[-4:]


def without(machine, program, *names):
    """How far a recording can be trusted from which events of these names were taken out."""
    machine.run(program)
    machine.events = [event for event in machine.events if not any(name in event["name"] for name in names)]
    event_graph = event_graph_of(machine.trace())
    return fidelity_of(event_graph, event_graph.graph())


def test_waits_that_are_missing_show():
    """As a rule nothing else says so: what is left is consistent."""
    program = [[("launch", 0, 900 * US), ("work", 100 * US), ("item", 0), ("work", 300 * US)]] * 8
    assert without(Machine(), program).silent == 0
    missing = without(Machine(), program, "Memcpy", "Synchronize")
    assert missing.error == missing.unexplained == 0
    assert missing.silent == pytest.approx(0.8 / 1.2, abs=0.05)
    assert not missing.enough


def test_a_host_that_works_is_not_silent_for_the_device():
    for seed in range(PROGRAMS):
        event_graph, _ = told(Machine(seed), random_program(seed, ALL, queues=2, edges="used"))
        assert fidelity_of(event_graph, event_graph.graph()).silent == 0


def test_edges_that_are_missing_show_where_a_price_depends_on_them():
    wrong = 0
    for seed in range(counts(50)):  # one in a few has such edges
        program = random_program(seed, ALL, queues=2, edges="used")
        machine = Machine(seed)
        machine.run(program)
        machine.events = [event for event in machine.events if "Wait" not in event["name"]]
        event_graph = event_graph_of(machine.trace())
        graph = event_graph.graph()
        window = timed_part(graph)
        true = machine.run(program, waits=False)
        off = window.of(replay(graph, range(len(graph.reads)))) * window.steps - true[window.last] + true[window.first]
        if abs(off) > 0.05 * (graph.ends[window.last] - graph.ends[window.first]):
            wrong += 1
            assert not fidelity_of(event_graph, graph).enough, seed
    assert wrong > 0


@pytest.mark.parametrize("name", ["a100_train_ddp8_rank3_60reads", "multirank_dlrm8/worker1.pt.trace"])
def test_waits_taken_out_of_a_real_recording_show(shared, name):
    whole = kineto.read(shared / "traces" / f"{name}.json.gz")
    event_graph = event_graph_of(whole)
    assert fidelity_of(event_graph, event_graph.graph()).silent == 0
    kept = np.ones(len(whole), bool)
    kept[[row for read in event_graph.reads for row in read.calls]] = False
    blocked = sum(read.blocked for read in event_graph.reads) / event_graph.graph().end
    event_graph = event_graph_of(whole.take(kept))
    assert fidelity_of(event_graph, event_graph.graph()).silent == pytest.approx(blocked, rel=0.15)


def test_edges_taken_out_of_a_real_recording_show(shared):
    whole = kineto.read(shared / "traces" / "mi300x_resnet_train_fsdp8_rank0_stacks.json.gz")
    calls = np.array(["StreamWaitEvent" in name for name in whole.names], bool)[whole.name]
    errors = []
    for trace in (whole, whole.take(~calls)):
        event_graph = event_graph_of(trace)
        errors.append(fidelity_of(event_graph, event_graph.graph()).error)
    assert errors[0] < 0.001
    assert errors[1] > 0.1
