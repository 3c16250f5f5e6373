import itertools
import json
import shutil
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from drawn import COLUMN, Device, device_early, timeline
from effort import draws
from hypothesis import given, settings

from syncscope.analysis import in_c
from syncscope.analysis.changes import Supposed
from syncscope.analysis.entries import Hold, Launch
from syncscope.analysis.event_graph import event_graph_of
from syncscope.analysis.fidelity import error
from syncscope.analysis.hosts import Recorder
from syncscope.analysis.replay import replay, replay_all
from syncscope.model.trace import Event, Kind, Lane, Trace


def graph_of(trace, recorder=None):
    return event_graph_of(trace).graph(recorder)


def test_a_read_on_the_critical_path_costs_what_the_host_could_have_hidden():
    graph = graph_of(
        timeline("""
        host   a.<item   >.....b
        gpu    .AAAAAAAAAA......BBB
    """)
    )
    assert error(graph, replay(graph)) == 0
    saved = graph.end - replay(graph, {0}).end
    # without it the host goes on at column 2 and launches b at column 7: B begins when A has ended
    assert saved == pytest.approx(6 * COLUMN, abs=10_000)


def test_removing_one_read_moves_the_wait_to_the_next():
    graph = graph_of(
        timeline("""
        host   a.<item>.<item>....b
        gpu    .AAAAAAAAAAAAAA.....BB
    """)
    )
    whole = graph.end
    assert whole - replay(graph, {0}).end < COLUMN / 10
    assert whole - replay(graph, {0, 1}).end > 4 * COLUMN


def test_a_host_bound_loop_gains_only_the_time_it_waited():
    graph = graph_of(
        timeline("""
        host   a.<item>..........b.<item>..........c
        gpu    .AAAAAAA...........BBBBBBB...........CC
    """)
    )
    assert graph.end - replay(graph, {0, 1}).end == pytest.approx(12 * COLUMN, abs=10_000)


def test_what_a_wait_was_for_is_a_guess_only_among_several_queues():
    one = """
        host   a.<item   >.....b
        gpu    .AAAAAAAAAA......BBB
    """
    assert graph_of(timeline(one)).guessed == 0
    assert graph_of(timeline(one + "    gpu2   .CC")).guessed == 1


def test_queues_wait_for_each_other_where_times_say_so():
    graph = graph_of(
        timeline("""
        host   ab.<item  >.........c
        gpu    .AAAAAAAAA..........CC
        gpu2   ..........BBBB
    """)
    )
    assert graph.inferred == 1
    assert replay(graph, {0}).end >= 14 * COLUMN


def test_queues_wait_for_each_other_where_the_driver_says_so():
    trace = timeline("""
        host   a..............<item>b.........c
        gpu    .AAAAAAAAAAAAAAAAAAA...........CC
        gpu2   .....................BBBB
    """)
    record = Event(Kind.CALL, "cudaEventRecord", Lane(1, 1), COLUMN, 1_000, correlation=900)
    told = Event(Kind.CALL, "cudaStreamWaitEvent", Lane(1, 1), COLUMN + 5_000, 1_000, correlation=901)
    detail = json.dumps({"sync_kind": "Stream Wait Event", "wait_on_stream": 1, "wait_on_record": 900})
    sync = Event(Kind.SYNC, "Stream Wait Event", Lane(0, 2, 0), COLUMN + 5_000, 1_000, correlation=901, detail=detail)
    free, graph = graph_of(trace), graph_of(Trace.of([*trace, record, told, sync]))
    assert error(graph, replay(graph)) == 0
    assert not any(isinstance(entry, Launch) for entry in free.stream)
    (launch,) = [entry for entry in graph.stream if isinstance(entry, Launch)]
    assert (launch.source, launch.lag) == (0, 2_000)


def test_a_wrong_clock_shows_in_the_fidelity():
    trace = timeline("""
        host   ...a.<item  >..b.<item  >..c..
        gpu    ....AAAAAAAA....BBBBBBBB....CC
    """)
    early = device_early(trace, 8 * COLUMN)
    graph = graph_of(trace)
    assert error(graph, replay(graph)) == 0
    graph = graph_of(early)
    assert error(graph, replay(graph)) > 0.05


def test_the_profiler_s_time_can_be_taken_off_the_host():
    trace = timeline("""
        host   a.(x)..(y)..b..(z)....c
        gpu    .A..........BB........C
    """)
    whole, lean = graph_of(trace), graph_of(trace, Recorder(each=50_000))
    assert replay(whole).end - replay(lean).end == 3 * 50_000


def test_the_profiler_s_time_within_a_read_goes_once():
    lane, queue, us = Lane(1, 1), Lane(0, 7, 0), 1_000
    events = []
    for step in range(6):
        at = step * 1_000 * us
        events += [
            Event(Kind.CALL, "cudaLaunchKernel", lane, at, 5 * us, correlation=step),
            Event(Kind.KERNEL, "k", queue, at + 10 * us, 20 * us, correlation=step),
            Event(Kind.OP, "aten::item", lane, at + 100 * us, 60 * us),
            Event(Kind.OP, "aten::_local_scalar_dense", lane, at + 110 * us, 45 * us),
            Event(Kind.CALL, "cudaStreamSynchronize", lane, at + 140 * us, 10 * us),
            Event(Kind.STEP, f"ProfilerStep#{step}", lane, at, 1_000 * us),
        ]
    event_graph = event_graph_of(Trace.of(events))
    assert [read.besides for read in event_graph.reads] == [50 * us] * 6
    everything = range(len(event_graph.reads))
    whole, lean = event_graph.graph(), event_graph.graph(Recorder(each=5 * us))
    saved = [replay(g).ends[4] - replay(g, everything).ends[4] for g in (whole, lean)]
    assert saved == pytest.approx([5 * 60 * us, 5 * 50 * us])


STEP = st.lists(
    st.one_of(
        st.tuples(st.just("work"), st.integers(0, 400_000)),
        st.tuples(st.just("launch"), st.integers(0, 1), st.integers(10_000, 600_000)),
        st.tuples(st.just("read"), st.integers(1, 3), st.integers(0, 1)),
    ),
    max_size=8,
)
PROGRAMS = st.lists(STEP, min_size=1, max_size=4).filter(lambda p: any(x[0] == "launch" for s in p for x in s))


@settings(max_examples=draws(50))
@given(PROGRAMS)
def test_what_never_changes_is_reproduced(program):
    trace, end = Device().run(program)
    graph = graph_of(trace)
    assert error(graph, replay(graph)) <= 1e-9
    assert replay(graph).end == pytest.approx(end)


@settings(max_examples=draws(50))
@given(PROGRAMS)
def test_on_one_queue_the_loop_without_reads_is_predicted(program):
    program = [
        [(*x[:1], 0, *x[2:]) if x[0] == "launch" else (*x[:2], 0) if x[0] == "read" else x for x in s] for s in program
    ]
    device = Device()
    trace, _ = device.run(program)
    graph = graph_of(trace)
    _, end = device.run(program, without={1, 2, 3})
    # a removed read is charged the return of its call, and the latency of a launch is known to a microsecond or so
    slack = 4_000 * (1 + sum(x[0] == "read" for s in program for x in s)) + 6_000
    assert abs(replay(graph, range(len(graph.reads))).end - end) <= slack


PARTS = st.one_of(
    st.tuples(st.just("work"), st.integers(0, 400_000)).map(lambda x: [x]),
    st.tuples(st.just("launch"), st.integers(0, 1), st.integers(20_000, 400_000)).map(lambda x: [x]),
    st.tuples(st.just("read"), st.just(1), st.integers(0, 1)).map(lambda x: [x]),
    st.tuples(
        st.integers(0, 1), st.integers(20_000, 400_000)
    ).map(  # as torch and NCCL do: make a queue wait, then use it
        lambda x: [("wait", x[0], 1 - x[0]), ("launch", *x)]
    ),
)


@settings(max_examples=draws(40))
@given(st.lists(PARTS, min_size=4, max_size=20), st.integers(0, 2_000_000))
def test_queues_that_wait_for_each_other_are_predicted_without_a_record_of_it(parts, work):
    step = [*itertools.chain.from_iterable(parts), ("launch", 0, 50_000), ("work", work)]
    device = Device()
    graph = graph_of(device.run([step] * 8)[0])
    assert error(graph, replay(graph)) <= 1e-9
    _, end = device.run([step] * 8, without={1})
    reads = 8 * sum(x[0] == "read" for x in step)
    assert replay(graph, range(len(graph.reads))).end == pytest.approx(end, rel=0.01, abs=5_000 * (1 + reads))


@settings(max_examples=draws(30))
@given(PROGRAMS, st.randoms(), st.booleans())
def test_side_by_side_is_one_by_one(program, random, compiled):
    with pytest.MonkeyPatch.context() as patch:
        if not compiled:
            patch.setattr(in_c, "library", lambda: None)
        many_are_as_one(graph_of(Device().run(program)[0]), random)


def many_are_as_one(graph, random):
    freed = np.array([[random.random() < 0.5 for _ in graph.reads] for _ in range(20)]).reshape(20, len(graph.reads))
    end, ends = replay_all(graph, freed)
    for row in range(20):
        one = replay(graph, np.flatnonzero(freed[row]).tolist())
        assert end[row] == pytest.approx(one.end)
        assert ends[row].tolist() == pytest.approx(list(one.ends))


def test_back_pressure_stops_the_host(monkeypatch):
    monkeypatch.setattr("syncscope.analysis.start_causes.DEPTH", 4)
    program = [[("launch", 0, 100_000), ("read", 1, 0)] * 20]
    graph = graph_of(Device().run(program)[0])
    assert graph.depth == 4
    free = replay(graph, range(len(graph.reads)))
    assert free.ends[0] >= 20 * 100_000
    ends, _ = replay_all(graph, np.ones((20, len(graph.reads)), bool))
    assert ends[0] == pytest.approx(free.end)


@settings(max_examples=draws(30))
@given(st.lists(st.tuples(st.sampled_from([50_000, 200_000]), st.integers(0, 9)), min_size=12, max_size=24))
def test_a_full_queue_holds_the_host_where_no_wait_does(steps):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("syncscope.analysis.start_causes.DEPTH", 40)
        program = [
            [("launch", 0, kernel)] * 30 + [("read", 1, 0)] * (number % 4 == 3) + [("work", work * 1_000_000)]
            for number, (kernel, work) in enumerate(steps)
        ]
        device = Device(depth=40)
        graph = graph_of(device.run(program)[0])
        assert error(graph, replay(graph)) <= 0.01, "calls that the queue held up are as long as the device makes them"
        _, end = device.run(program, without={1})
        assert replay(graph, range(len(graph.reads))).end == pytest.approx(end, rel=0.03)


def test_threads_that_overlap_are_told():
    trace = timeline("""
        host    a.<item     >...b
        loader  .....c.d.........
        gpu     .AAAAAAAAAA......BB
        gpu2    ......C.D.......
    """)
    assert graph_of(trace).overlap > 0.1
    assert graph_of(timeline("host a.b\ngpu .A.B")).overlap == 0


@pytest.mark.skipif(in_c.library() is None and shutil.which("cc") is None, reason="no C compiler")
@settings(max_examples=draws(30))
@given(PROGRAMS, st.randoms(), st.sampled_from([3, 1024]))
def test_in_c_is_in_python_to_the_last_bit(program, random, depth):
    """Also where a queue is full, and where waits are for the work of other steps."""
    assert in_c.library() is not None, "it does not compile"
    recorded = event_graph_of(Device().run(program)[0])
    for graph in (
        replace(recorded.graph(), depth=depth),
        replace(recorded.graph(supposed=Supposed(gone=True)), depth=depth),
    ):
        freed = [number for number in range(len(graph.reads)) if random.random() < 0.5]
        holds = [entry for entry in graph.stream if isinstance(entry, Hold) and entry.read >= 0]
        earlier = {graph.holds[r][0]: one.targets for r, one in zip(freed, holds, strict=False) if graph.holds[r]}
        at_end = {number: one.targets for number, one in enumerate(holds[: len(graph.steps)])}
        asked = [(freed, None, None), ((), earlier, None), (freed, None, at_end)]
        found = [replay(graph, *one) for one in asked]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(in_c, "library", lambda: None)
            assert [replay(graph, *one) for one in asked] == found
