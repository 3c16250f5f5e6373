import numpy as np
import pytest
from drawn import COLUMN, Device, timeline

from syncscope.analysis.event_graph import event_graph_of
from syncscope.analysis.fidelity import error, fidelity_of
from syncscope.analysis.price import unpriced
from syncscope.analysis.replay import replay
from syncscope.analysis.start_causes import Cause
from syncscope.analysis.summary import summarize
from syncscope.model.source import Place
from syncscope.model.trace import DEVICE, Event, Flag, Kind, Lane, Trace

US = 1_000


def causes(trace):
    """Why each piece of work began when it did, by its name."""
    work = event_graph_of(trace)._work
    return {trace.names[trace.name[row]]: Cause(cause) for row, cause in zip(work.row, work.cause, strict=True)}


def trusted(trace):
    event_graph = event_graph_of(trace)
    return fidelity_of(event_graph, event_graph.graph())


def changed(trace, event, /, **changes):
    """The trace with other facts about the events of one name."""
    return Trace.of(
        Event(**{s: getattr(e, s) for s in Event.__slots__} | (changes if e.name == event else {})) for e in trace
    )


def test_launched_queued_or_handed_over():
    trace = timeline("""
        host   abc.d...........
        gpu    .AAABBBB...DDDD
        gpu2   ........CCC
    """)
    assert causes(trace) == {"A": Cause.LAUNCH, "B": Cause.QUEUE, "C": Cause.INFERRED, "D": Cause.INFERRED}


def test_what_nothing_recorded_held_up_is_late():
    trace = timeline("""
        host   ab..<item       >...c
        gpu    .AAA.......BBB.......C
    """)
    graph = event_graph_of(trace).graph()
    assert causes(trace)["B"] == Cause.NOTHING
    assert error(graph, replay(graph)) == 0
    found = trusted(trace)
    assert found.unexplained == pytest.approx(7 / 22, abs=0.01)
    assert found.error > 0.2
    assert not found.enough
    report = summarize(trace)
    assert report.saving is None
    assert "No savings" in report.verdict


@pytest.mark.parametrize(("hand_over", "count"), [(1, 60), (18, 60), (18, 8)])
def test_a_queue_that_hands_over_slowly_is_not_late(hand_over: int, count: int) -> None:
    """PoCL on many threads takes 18 us from one kernel to the next, though launched long before: of many, one can tell."""
    host, queue, events = Lane(1, 1, label="MainThread"), Lane(1, 7, device=0), []
    for n in range(count):
        events.append(Event(Kind.CALL, "clEnqueueNDRangeKernel", host, n * 5 * US, 3 * US, correlation=n))
        spread = n % 7 * hand_over * US // 10
        start = 10 * US + n * (100 + hand_over) * US + spread
        events.append(Event(Kind.KERNEL, f"k{n}", queue, start, 100 * US - spread, correlation=n))
    last = events[-1].start + 100 * US
    late = Event(Kind.KERNEL, "late", queue, last + 300 * US, 100 * US, correlation=count)
    launch = Event(Kind.CALL, "clEnqueueNDRangeKernel", host, count * 5 * US, 3 * US, correlation=count)
    found = causes(Trace.of([*events, launch, late]))
    slow = hand_over > 4 and count < 20
    assert {found[f"k{n}"] for n in range(count - 1, 3, -1)} == {Cause.NOTHING if slow else Cause.QUEUE}
    assert found["late"] == Cause.NOTHING


def test_kernels_of_another_queue_may_have_the_device_to_themselves():
    trace = timeline("""
        host   ab...............
        gpu    .AAAAAAAAAAA
        gpu2   .......BBB
    """)
    assert causes(trace)["B"] == Cause.FULL
    assert trusted(trace).unexplained == 0
    nccl = changed(trace, "A", name="ncclDevKernel_AllReduce")  # takes a few of the device's processors
    assert causes(nccl)["B"] == Cause.BEFORE
    copy = changed(trace, "A", kind=Kind.COPY)  # takes none
    assert causes(copy)["B"] == Cause.BEFORE


def test_the_device_may_be_busy_from_before_the_recording_until_the_host_has_waited():
    trace = timeline("""
        host   a.<item     >...b....
        gpu    ..........AA....BBB
    """)
    graph = event_graph_of(trace).graph()
    assert causes(trace)["A"] == Cause.BEFORE
    assert trusted(trace).error == 0
    # it begins when the device was free, however early the host comes
    assert replay(graph, {0}).end == pytest.approx(15 * COLUMN, abs=10 * US)
    later = timeline("""
        host   a.<item>..b..........
        gpu    .AAA
        gpu2   ...............BBB
    """)
    assert causes(later)["B"] == Cause.NOTHING


def test_a_launch_that_took_long_itself_explains_its_work():
    base = timeline("""
        host   a...............b
        gpu    .........A.......B
    """)
    assert causes(base)["A"] == Cause.BEFORE
    slow = Trace.of(
        Event(
            **{s: getattr(e, s) for s in Event.__slots__}
            | {"duration": 9 * COLUMN if e.correlation == ord("a") else e.duration}
        )
        if e.kind == Kind.CALL
        else e
        for e in base
    )
    assert causes(slow)["A"] == Cause.LAUNCH


def test_work_whose_launch_was_not_recorded_waits_for_other_queues_too():
    trace = timeline("""
        host   c...........<sync>d
        gpu    .AAA......CC.......D
        gpu2   ....BBBBBB
    """)
    trace = Trace.of(e for e in trace if e.name not in ("cudaLaunchKernel",) or e.correlation in (ord("c"), ord("d")))
    found = causes(trace)
    assert found["B"] in (Cause.LAUNCH, Cause.QUEUE, Cause.BEFORE)
    assert found["C"] == Cause.INFERRED
    graph = event_graph_of(trace).graph()
    assert error(graph, replay(graph)) == 0


def test_a_wait_that_returns_late_is_unexplained_on_its_thread():
    program = [[("launch", 0, 100 * US), ("read", 1, 0), ("work", 100 * US)]] * 10
    trace, _ = Device().run(program)
    assert trusted(trace).lanes == {}
    shift = 400 * US
    reads = trace.rows(Kind.READ)
    after, over = int(trace.start[reads[5]]), int(trace.end[reads[5]])
    slow = Trace.of(
        Event(
            **{s: getattr(e, s) for s in Event.__slots__}
            | {"start": e.start + shift * (e.start >= over)}
            | {"duration": e.duration + shift * (e.start <= after < e.end and e.kind not in DEVICE)}
        )
        for e in trace
    )
    found, graph = trusted(slow), event_graph_of(slow).graph()
    assert set(found.lanes) == {"thread 1"}
    assert found.lanes["thread 1"] * (graph.ends[8] - graph.ends[0]) == pytest.approx(shift, rel=0.01)
    assert found.error > 0.05


def test_prices_say_how_much_they_depend_on_what_is_unexplained():
    step = [("launch", 0, 1_500 * US), ("launch", 0, 1_500 * US), ("read", 1, 0), ("work", 1_000 * US)]
    trace, _ = Device().run([step] * 8)
    low, high = summarize(trace).saving_range
    assert high - low < US
    kernels = trace.rows(Kind.KERNEL)
    late = int(trace.start[kernels[7]])  # the second of its step: the first is over, and it does not begin
    slow = Trace.of(
        Event(
            **{s: getattr(e, s) for s in Event.__slots__}
            | {"start": e.start + 900 * US * (e.start >= late)}
            | {"duration": e.duration + 900 * US * (e.start < late < e.end)}
        )
        for e in trace
    )
    report = summarize(slow)
    assert 0 < report.fidelity < 0.05
    low, high = report.saving_range
    assert low <= report.saving <= high
    assert high - low > 100 * US


def masks(copied="Memcpy DtoH (Device -> Pageable)"):
    """Six steps: a kernel, a mask that is counted, read and gathered by, and the rest. ns of the mask on the host: 1 ms."""
    lane, queue = Lane(1, 1), Lane(0, 7, 0)
    events, number = [], 0
    for step in range(6):
        at = step * 4_000 * US
        for name, enqueued, start, length in [
            ("forward", 0, 10, 1_000),
            ("count", 1_010, 1_020, 298),
            (copied, 1_040, 1_320, 2),
            ("gather", 1_900, 1_910, 200),
            ("backward", 2_300, 2_310, 700),
        ]:
            number += 1
            copy = name == copied
            call = "cudaMemcpyAsync" if copy else "cudaLaunchKernel"
            events.append(
                Event(Kind.CALL, call, lane, at + enqueued * US, (285 if copy else 5) * US, correlation=number)
            )
            kind = Kind.COPY if copy else Kind.KERNEL
            events.append(Event(kind, name, queue, at + start * US, length * US, correlation=number))
        events.append(Event(Kind.READ, "mask_read", lane, at + 1_005 * US, 1_000 * US, place=Place("train.py", 3)))
        events.append(Event(Kind.STEP, f"ProfilerStep#{step}", lane, at, 3_990 * US))
    return Trace.of(events)


def test_a_mask_goes_with_all_it_did_or_something_stands_in_its_place():
    report = summarize(masks())
    low, high = report.saving_range
    assert report.saving == pytest.approx(1_000 * US, rel=0.02)  # all the host did
    assert high == pytest.approx(report.saving, rel=0.01)  # a host that did not wait may go on a little faster
    assert low == pytest.approx(280 * US, rel=0.02)  # the wait
    assert report.lines[0].price.alone == report.saving


def test_an_index_that_is_copied_to_the_device_stays():
    report = summarize(masks("Memcpy HtoD (Pageable -> Device)"))
    low, high = report.saving_range
    assert low == pytest.approx(280 * US, rel=0.02)
    assert high == pytest.approx(low, rel=0.02)


def test_a_recording_s_first_queues_do_not_depend_on_how_they_are_numbered():
    trace, _ = Device().run([[("launch", 1, 50 * US), ("launch", 0, 70 * US), ("read", 1, 0)]] * 5)
    other = Trace.of(
        Event(
            **{s: getattr(e, s) for s in Event.__slots__}
            | ({"lane": Lane(0, 99 - int(e.lane.thread), 0)} if e.kind in DEVICE else {})
        )
        for e in trace
    )
    one, two = event_graph_of(trace), event_graph_of(other)
    freed = [range(len(one.reads)), range(len(two.reads))]
    assert unpriced(one.graph()) == unpriced(two.graph())
    assert np.isclose(replay(one.graph(), freed[0]).end, replay(two.graph(), freed[1]).end)


def test_opencl_s_driver_may_keep_kernels_back_until_the_host_waits():
    lane, queue = Lane(1, 1), Lane(0, 1, 0)

    def kernel(number, enqueued, start):
        yield Event(Kind.CALL, "clEnqueueNDRangeKernel", lane, enqueued, 10 * US, correlation=number)
        yield Event(Kind.KERNEL, f"k{number}", queue, start, 50 * US, correlation=number)

    events = []
    for step in range(6):
        at = step * 8_000 * US
        for n in range(3):
            events += kernel(10 * step + n, at + n * 100 * US, at + 5_200 * US + n * 60 * US)
        events.append(
            Event(Kind.CALL, "clFinish", lane, at + 5_000 * US, 400 * US, flags=Flag.BLOCKING)
        )  # the kernels begin 0.2 ms after it does
    events += kernel(99, 48_000 * US, 48_020 * US)  # else the last clFinish would be the recorder's own
    held = Trace.of(events)
    assert {c for name, c in causes(held).items() if name.endswith("0")} == {Cause.LAUNCH}
    assert trusted(held).unexplained == 0
    graph = event_graph_of(held).graph()
    assert error(graph, replay(graph)) == 0
    cuda = Trace.of(
        Event(
            **{s: getattr(e, s) for s in Event.__slots__} | {"name": e.name.replace("clEnqueueNDRange", "cudaLaunch")}
        )
        for e in held
    )
    assert trusted(cuda).unexplained > 0.3  # CUDA submits at once: there it would be a riddle


def test_a_queue_that_is_behind_at_first_was_not_kept_back_until_a_copy():
    """The host never waits; the device still does what came before, and begins just after a copy was enqueued, by chance."""
    host, queue, now, device, events, number = Lane(1, 1), Lane(0, 1, 0), 0, 17_100 * US, [], 0
    for step in range(8):
        events.append(Event(Kind.STEP, f"ProfilerStep#{step}", host, now, 3_000 * US))
        for kind, name, call in (
            *[(Kind.KERNEL, "k", "clEnqueueNDRangeKernel")] * 4,
            (Kind.COPY, "Memcpy DtoD", "clEnqueueCopyBuffer"),
        ):
            number += 1
            events.append(Event(Kind.CALL, call, host, now + (number - 1) % 5 * 500 * US, 10 * US, correlation=number))
            events.append(Event(kind, name, queue, device, 1_000 * US, correlation=number))
            device += 1_002 * US
        now += 3_000 * US
    event_graph = event_graph_of(Trace.of(events))
    work = event_graph.device_work
    assert (work.item == work.enqueued).all()
    ends = np.array(event_graph.graph().ends)
    assert np.diff(ends)[:-1] == pytest.approx(5 * 1_002 * US, rel=0.01)  # steps are as long as their work


def test_work_that_a_driver_kept_back_until_a_read_is_not_the_read_s():
    """It is submitted by the read, and asked for before: without the read it is still done."""
    host, queue, us = Lane(1, 1), Lane(0, 7, 0), 1_000
    events, number = [], 0
    for step in range(6):
        now = step * 4_000 * us
        events.append(Event(Kind.STEP, f"ProfilerStep#{step}", host, now, 4_000 * us))
        read, device = now + 800 * us, now + 830 * us
        for kernel in range(6):
            number += 1
            events.append(
                Event(Kind.CALL, "clEnqueueNDRangeKernel", host, now + 100 * us * kernel, 5 * us, correlation=number)
            )
            events.append(Event(Kind.KERNEL, "k", queue, device, 300 * us, correlation=number))
            device += 305 * us
        number += 1
        events.append(Event(Kind.READ, "nonzero", host, read, 2_000 * us))
        events.append(
            Event(
                Kind.CALL,
                "clEnqueueReadBuffer",
                host,
                read + 10 * us,
                1_960 * us,
                correlation=number,
                flags=Flag.BLOCKING,
            )
        )
        events.append(Event(Kind.COPY, "Memcpy DtoH (Device -> Pageable)", queue, device, us, correlation=number))
    event_graph = event_graph_of(Trace.of(events))
    assert [read.op for read in event_graph.reads] == ["nonzero"] * 6
    assert event_graph.counting == frozenset(range(6))
    time, pieces, calls = event_graph.work(0.0, 1e12, range(6))
    assert (time, pieces, calls) == (6 * 6 * 300 * us, 36, 36)
