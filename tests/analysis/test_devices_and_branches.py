"""Recordings that tempt the analysis into a wrong answer: several devices, branches of a graph, steps within steps."""

import json

import pytest
from drawn import COLUMN, timeline

from syncscope.analysis.event_graph import event_graph_of
from syncscope.analysis.fidelity import error, fidelity_of
from syncscope.analysis.price import unpriced
from syncscope.analysis.replay import replay
from syncscope.analysis.start_causes import Cause
from syncscope.model.trace import DEVICE, Event, Kind, Lane, Trace

US = 1_000


def on(event, **changes):
    return Event(**{s: getattr(event, s) for s in Event.__slots__} | changes)


def test_a_wait_for_the_device_is_one_for_its_own_queues():
    """Two devices of one process: the other one works on, and is waited for by nobody."""
    trace = timeline("""
        host   ab.<sync>.c......
        gpu    .AAAAA....CC
        gpu2   ..BBBBBBBBBBBBBBB
    """)
    trace = Trace.of(on(e, lane=Lane(1, 7, 1)) if e.name == "B" else e for e in trace)
    event_graph = event_graph_of(trace)
    (read,) = event_graph.reads
    assert trace[read.waited_for].name == "A"
    assert read.blocked == 3 * COLUMN
    graph = event_graph.graph()
    assert error(graph, replay(graph)) == 0


def test_lateness_is_told_by_device_where_there_are_several():
    trace = timeline("""
        host   ab.<x    >cd...<sync             >e
        gpu    .AAAAAAA...........CCC............E
        gpu2   ..BBB................DDD
    """)
    trace = Trace.of(on(e, lane=Lane(1, 2, 1)) if e.name in "BD" else e for e in trace)
    event_graph = event_graph_of(trace)
    assert set(fidelity_of(event_graph, event_graph.graph()).lanes) == {"stream 1 of device 0", "stream 2 of device 1"}


def test_a_recorded_wait_names_a_stream_of_its_device():
    """Stream 7 of both devices: the record says which."""
    trace = timeline("""
        host   ab.<x     >..c
        gpu    .AAAAAAAAA...CC
        gpu2   ..BBBBBB
    """)
    call = next(e for e in trace if e.name == "cudaStreamSynchronize")
    detail = json.dumps({"sync_kind": "Stream Sync", "wait_on_stream": 7})
    events = [
        on(e, lane=Lane(0, 7, 0)) if e.name in "AC" else on(e, lane=Lane(1, 7, 1)) if e.name == "B" else e
        for e in trace
    ]
    events = [on(e, correlation=77) if e == call else e for e in events]
    record = Event(Kind.SYNC, "Stream Sync", Lane(1, 7, 1), call.start, 10, correlation=77, detail=detail)
    trace = Trace.of([*events, record])
    (read,) = event_graph_of(trace).reads
    assert trace[read.waited_for].name == "B"


def test_branches_of_a_graph_wait_for_each_other():
    """One launch, two queues: B begins when A has ended in the other queue, and D when B has."""
    trace = timeline("""
        host   a..........<item  >...e
        gpu    .AAAAA...DDDDDDDDD.....E
        gpu2   ......BBB
    """)
    trace = Trace.of(on(e, correlation=ord("a")) if e.name in "BD" else e for e in trace)
    event_graph = event_graph_of(trace)
    causes = {
        trace.names[trace.name[row]]: Cause(c)
        for row, c in zip(event_graph._work.row, event_graph._work.cause, strict=True)
    }
    assert causes["D"] == Cause.INFERRED
    assert causes["B"] in (Cause.INFERRED, Cause.LAUNCH)
    graph = event_graph.graph()
    assert error(graph, replay(graph)) == 0
    assert fidelity_of(event_graph, graph).error < 0.01


def test_a_chain_over_three_queues_holds_when_the_host_no_longer_waits():
    trace = timeline("""
        host   abc.<item        >....d
        gpu    .AAAAA................DD
        gpu2   ......BBBBB
        gpu3   ...........CCCCCC
    """)
    event_graph = event_graph_of(trace)
    graph = event_graph.graph()
    assert graph.inferred == 2
    assert error(graph, replay(graph)) == 0
    # D no longer waits for the host, and C still for B, which waits for A
    assert replay(graph, {0}).end == pytest.approx(17 * COLUMN, abs=10 * US)


def test_steps_within_steps_and_on_other_threads_are_not_counted():
    trace = timeline("""
        steps  1=========|2=========|3=========|4=========|
        host   a.<item>..b.<item>...c.<item>...d.<item>...
        gpu    .AAAA......BBBB.......CCCC.......DDDD
    """)
    inner = [Event(Kind.STEP, "ProfilerStep#1", Lane(1, 1), (1 + 11 * n) * COLUMN, 3 * COLUMN) for n in range(2)]
    other = Event(Kind.STEP, "ProfilerStep#9", Lane(1, 55), 5 * COLUMN, 20 * COLUMN)
    plain, event_graph = event_graph_of(trace), event_graph_of(Trace.of([*trace, *inner, other]))
    assert [s.index for s in event_graph.steps] == [1, 2, 3, 4]
    assert event_graph.graph().ends == plain.graph().ends
    assert [r.step for r in event_graph.reads] == [1, 2, 3, 4]


def test_a_read_at_the_end_of_the_recording_is_no_price_and_no_error():
    trace = timeline("""
        host   a.<item>..b.<item        >
        gpu    .AAAAAA....BBBBBBBBBBBBBBB
    """)
    event_graph = event_graph_of(trace)
    graph = event_graph.graph()
    assert unpriced(graph) == {1}
    assert error(graph, replay(graph)) == 0


def test_work_that_overlaps_in_one_queue_shows_in_the_fidelity():
    """No queue does two things at once: a misread queue."""
    trace = timeline("""
        host   ab..<item      >..c
        gpu    .AAAAAAAAAA.......C
        gpu2   .BBBBBBBBBBBB
    """)
    trace = Trace.of(on(e, lane=Lane(0, 7, 0)) if e.kind in DEVICE else e for e in trace)
    event_graph = event_graph_of(trace)
    assert fidelity_of(event_graph, event_graph.graph()).error > 0.05


def test_a_copy_that_returns_before_its_work_and_a_poll_hold_nobody_up():
    trace = timeline("""
        host   a.........b
        gpu    .AAAAAAAAABB
    """)
    lane, queue = Lane(1, 1), Lane(0, 9, 0)
    copy = Event(Kind.CALL, "cudaMemcpyAsync", lane, 2 * COLUMN, 10 * US, correlation=500)
    work = Event(Kind.COPY, "Memcpy DtoH (Device -> Pinned)", queue, 10 * COLUMN, 5 * US, correlation=500)
    poll = [Event(Kind.CALL, "cudaEventQuery", lane, (3 + n) * COLUMN, 2 * US) for n in range(5)]
    assert event_graph_of(Trace.of([*trace, copy, work, *poll])).reads == ()
