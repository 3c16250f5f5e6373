import json
from dataclasses import replace

import pytest
from drawn import COLUMN, timeline

from syncscope import rules
from syncscope.analysis.intervals import gaps, union
from syncscope.analysis.join import Join
from syncscope.analysis.reads import reads
from syncscope.analysis.steps import busy_share, steps
from syncscope.analysis.summary import summarize
from syncscope.analysis.waits import launches, waits
from syncscope.discover import discover
from syncscope.exporters import terminal
from syncscope.model.source import Place
from syncscope.model.trace import Event, Flag, Kind, Lane, Trace


def reads_of(trace):
    launched = launches(trace)
    return reads(trace, waits(trace, launched), launched, steps(trace, launched))


def test_a_read_knows_how_long_it_blocked_and_what_followed():
    trace = timeline("""
        steps  3===================|
        host   ab.<item     >.c....
        gpu    ..AAAABBBBBB.....CCC
    """)
    (read,) = reads_of(trace)
    assert (read.op, read.step) == ("item", 3)
    assert read.start == 3 * COLUMN
    assert read.blocked == 9 * COLUMN
    assert read.idle_after == 5 * COLUMN
    assert read.ahead == (3 + 6) * COLUMN
    assert trace[read.waited_for].name == "B"


def test_the_calls_of_one_operator_are_one_read():
    trace = timeline("""
        host   a.(nonzero          )..b
        host   ....<x  >...<x     >....
        gpu    .AAAAAA..........BBBBBBB
    """)
    (read,) = reads_of(trace)
    assert read.op == "nonzero"
    assert len(read.calls) == 2


def test_a_read_without_a_line_is_named_by_the_region_around_it():
    trace = timeline("""
        steps  3========================|
        host   ab.<item  >.c.<item  >.d.
        gpu    ..AAABBBB....CCCCCC....DD
    """)
    whole, inner = (
        Event(Kind.ANNOTATION, name, Lane(1, 1), begin * COLUMN, length * COLUMN)
        for name, begin, length in (("## forward_loss ##", 0, 12), ("ProfilerStep#3", 11, 14))
    )
    first, second = reads_of(Trace.of([*trace, whole, inner]))
    assert (first.module, second.module) == ("region forward_loss", "")
    report = summarize(Trace.of([*trace, whole, inner]))
    said = " ".join(terminal.export(report).split())
    assert "in region forward_loss" in said
    lined = [replace(e, place=Place("train.py", 7)) if e.name == "aten::item" else e for e in trace]
    assert reads_of(Trace.of([*lined, whole]))[0].module == "", "a line says more"


def test_every_idle_nanosecond_is_charged_once():
    trace = timeline("""
        host   a.<item >.<item>.b.<item   >.c
        gpu    .AAAAAA...........BBBBBBB....CC
    """)
    found = reads_of(trace)
    work = launches(trace).row
    idle = gaps(union(trace.start[work], trace.end[work]))
    assert sum(r.idle_after for r in found) == idle.length
    assert [r.idle_after > 0 for r in found] == [True, False, True]
    assert found[1].blocked == 0


def test_a_thread_that_only_polls_and_the_closing_wait_are_no_reads():
    trace = timeline("""
        host   a..b...........<sync >
        gpu    .AAAAAABBBBBBBBBBBBBB
    """)
    assert reads_of(trace) == ()
    watchdog = Event(Kind.CALL, "cudaEventSynchronize", Lane(1, 99), 2 * COLUMN, 3 * COLUMN)
    assert reads_of(Trace.of([*trace, watchdog])) == ()


def test_a_wait_for_everything_between_launches_is_one():
    trace = timeline("""
        host   a.<sync >.b
        gpu    .AAAAAAA...BB
    """)
    (read,) = reads_of(trace)
    assert read.op == "cudaDeviceSynchronize"
    assert read.blocked == 6 * COLUMN


def copy(name, host="Pageable", ends=9):
    lane = Lane(1, 1)
    return Trace.of(
        [
            Event(Kind.OP, "aten::_local_scalar_dense", lane, 0, 10_000),
            Event(Kind.CALL, name, lane, 1_000, 8_000, correlation=5),
            Event(
                Kind.COPY, f"Memcpy DtoH (Device -> {host})", Lane(0, 7, 0), 4_000, ends * 1000 - 4_000, correlation=5
            ),
            Event(Kind.CALL, "cudaLaunchKernel", lane, 12_000, 100),
        ]
    )


@pytest.mark.parametrize(
    ("trace", "waits_for_it"),
    [
        (copy("cudaMemcpyAsync"), True),
        (copy("cudaMemcpyAsync", "Pinned"), False),
        (copy("cudaMemcpyAsync", ends=20), True),  # the clocks are a little apart
        (copy("cudaMemcpyAsync", ends=40), False),  # it returned before
        (copy("hipMemcpyWithStream", "Host"), True),
        (copy("cudaMemcpy"), True),
        (copy("cudaMalloc"), False),
    ],
)
def test_a_copy_waits_in_the_copy_unless_its_host_side_is_pinned(trace, waits_for_it):
    found = reads_of(trace)
    assert [r.op for r in found] == (["item"] if waits_for_it else [])


def test_the_driver_s_own_record_tells_the_queue():
    base = timeline("""
        host   ab.<item  >...c
        gpu    .AAAAAAAAA....CC
        gpu2   ...BB
    """)
    call = next(e for e in base if e.name == "cudaStreamSynchronize")
    named = [
        Event(**{s: getattr(e, s) for s in Event.__slots__} | {"correlation": 77}) if e == call else e for e in base
    ]
    detail = json.dumps({"sync_kind": "Stream Sync", "wait_on_stream": 2})
    sync = Event(Kind.SYNC, "Stream Sync", Lane(0, -1, 0), call.start, 10, correlation=77, detail=detail)
    (read,) = reads_of(base)
    assert base[read.waited_for].name == "A"
    trace = Trace.of([*named, sync])
    (read,) = reads_of(trace)
    assert trace[read.waited_for].name == "B"


def test_the_line_recorded_with_a_read_wins_and_fallbacks_are_named():
    lane = Lane(1, 1)
    call = Event(Kind.CALL, "clEnqueueReadBuffer", lane, 20, 50, flags=Flag.BLOCKING, correlation=1)
    work = Event(Kind.COPY, "read", Lane(0, 0, 0), 30, 10, correlation=1)
    later = Event(Kind.CALL, "clEnqueueNDRangeKernel", lane, 90, 1)
    place = Place("train.py", 42)
    read = Event(Kind.READ, "tolist", lane, 10, 70, place=place, column=8, detail='{"module": "Net.head"}')
    (found,) = reads_of(Trace.of([read, call, work, later]))
    assert (found.op, found.place, found.column, found.module) == ("tolist", place, 8, "Net.head")
    fallback = Event(Kind.OP, "aten::erfinv", lane, 10, 70, flags=Flag.FALLBACK)
    (found,) = reads_of(Trace.of([fallback, call, work, later]))
    assert (found.op, found.fallback) == ("fallback of aten::erfinv", True)


@pytest.mark.parametrize(
    ("operator", "heard", "op", "only_here"),
    [
        ("aten::bincount", "bincount", "bincount", False),  # torch.bincount was heard, and the CPU ran it
        ("aten::bincount", "", "bincount", False),  # called by an operator: no function was heard
        ("aten::_linalg_svd", "ocl_fallback", "linalg_check", False),
        ("aten::unique_dim.out", "ocl_fallback", "unique", False),
        ("aten::_assert_async.msg", "ocl_fallback", "ocl_fallback", True),
        ("aten::_fft_r2c", "_fft_r2c", "_fft_r2c", True),  # a wait that only the end of the operator tells
        ("aten::_fft_r2c", "", "fallback of aten::_fft_r2c", True),
    ],
)
def test_what_the_cpu_ran_is_a_sync_where_cuda_waits_for_it_too(operator, heard, op, only_here):
    lane = Lane(1, 1)
    name = f"fallback of {operator}"
    own = (heard and heard != op) or only_here
    read = Event(
        Kind.READ, heard, lane, 10, 70,
        flags=Flag.FALLBACK if own else Flag.NONE, detail=json.dumps({"operator": name}) if own else "",
    )  # fmt: skip
    events = [
        *([read] if heard else []),
        Event(Kind.OP, name, lane, 12, 60, flags=Flag.FALLBACK),
        Event(Kind.CALL, "clEnqueueReadBuffer", lane, 20, 50, flags=Flag.BLOCKING, correlation=1),
        Event(Kind.COPY, "read", Lane(0, 0, 0), 30, 10, correlation=1),
        Event(Kind.CALL, "clEnqueueNDRangeKernel", lane, 90, 1),
    ]
    (found,) = reads_of(Trace.of(events))
    assert (found.op, found.fallback) == (op, only_here)


def test_lines_come_from_the_innermost_frame_of_the_user():
    lane = Lane(1, 1)
    frames = [
        ("train.py(3): main", Place("train.py", 3)),
        ("/lib/site-packages/timm/loss.py(12): forward", Place("/lib/site-packages/timm/loss.py", 12)),
        ("torch/_tensor.py(30): __bool__", Place("torch/_tensor.py", 30)),
        ("<built-in method item>", None),
    ]
    python = [Event(Kind.PYTHON, name, lane, i, 100 - i, place=place) for i, (name, place) in enumerate(frames)]
    launch = Event(Kind.CALL, "cudaLaunchKernel", lane, 90, 1, correlation=1)
    work = Event(Kind.KERNEL, "k", Lane(0, 7, 0), 95, 1, correlation=1)
    trace = Trace.of([*python, Event(Kind.CALL, "cudaStreamSynchronize", lane, 50, 5), launch, work])
    (found,) = reads_of(trace)
    assert (found.place, found.function) == (frames[1][1], "forward")


def test_busy_is_the_union_of_the_queues_within_the_steps():
    trace = timeline("""
        steps  1========|2========|
        host   ab........c.........
        gpu    ..AAAA......CC......
        gpu2   ....BBBB............
    """)
    launched = launches(trace)
    found = steps(trace, launched)
    assert [(s.index, s.busy // COLUMN) for s in found] == [(1, 6), (2, 2)]
    assert busy_share(trace, launched, found) == 8 / 20


COPIES = {"up": "Memcpy HtoD (Pageable -> Device)", "down": "Memcpy DtoH (Device -> Pageable)", "inside": "Memcpy DtoD"}


@pytest.mark.parametrize(
    ("operator", "ways", "op", "rule"),
    [
        ("aten::to", ["up"], "to_device", "blocking-upload"),
        ("aten::to", ["down"], "to", "host-copy"),
        ("aten::to", ["up", "down"], "to", "host-copy"),
        ("aten::_to_copy", ["up", "inside"], "to_device", "blocking-upload"),
        ("aten::copy_", ["up"], "to_device", "blocking-upload"),
        ("aten::index", ["up"], "index_host", "host-tensor-as-index"),
        ("aten::index", ["down"], "index", "boolean-mask-read"),
        ("aten::index", ["up", "down"], "index", "boolean-mask-read"),
        ("aten::_index_put_impl_", ["up"], "index_host", "host-tensor-as-index"),
        ("aten::_index_put_impl_", ["down"], "_index_put_impl_", "boolean-mask-write"),
        ("aten::item", ["up"], "item", "host-read"),
    ],
)
def test_the_way_that_copies_go_says_which_rule_knows_the_wait(operator, ways, op, rule):
    lane, queue = Lane(1, 1), Lane(0, 7, 0)
    events = [Event(Kind.OP, operator, lane, 100, 900)]
    for n, way in enumerate(ways):
        events += [
            Event(Kind.CALL, "cudaMemcpyAsync", lane, 110 + 100 * n, 5, correlation=n),
            Event(Kind.COPY, COPIES[way], queue, 120 + 100 * n, 50, correlation=n, bytes=2808),
        ]
    events.append(Event(Kind.CALL, "cudaStreamSynchronize", lane, 700, 250))
    other = [  # on another thread, and later on this one: neither is the operator's
        Event(Kind.CALL, "cudaMemcpyAsync", Lane(1, 2), 130, 5, correlation=90),
        Event(Kind.COPY, COPIES["down"], queue, 400, 50, correlation=90),
        Event(Kind.CALL, "cudaMemcpyAsync", lane, 1100, 5, correlation=91),
        Event(Kind.COPY, "Memcpy DtoH (Device -> Pinned)", queue, 1200, 50, correlation=91),
    ]
    trace = Trace.of([*events, *other])
    read = next(read for read in reads_of(trace) if trace[read.row].name == operator)
    assert read.op == op
    hazards = [rules.hazard(name, known) for name, known in discover(rules).items()]
    assert Join((), hazards).rule(read.op, None) == rule


def bare(way: str, between: bool = False, host: str = "Pageable") -> Trace:
    """A copy and the wait for its queue, as a recording of the device alone has them: no operator, no line."""
    lane, names = Lane(1, 1), {"up": f"Memcpy HtoD ({host} -> Device)", "down": f"Memcpy DtoH (Device -> {host})"}
    events = []
    for n in range(3):
        at = 100_000 * n
        events += [
            Event(Kind.CALL, "cudaLaunchKernel", lane, at, 5_000, correlation=3 * n),
            Event(Kind.KERNEL, "k", Lane(0, 7, 0), at + 6_000, 40_000, correlation=3 * n),
            Event(Kind.CALL, "cudaMemcpyAsync", lane, at + 10_000, 38_500, correlation=3 * n + 1),
            Event(Kind.COPY, names[way], Lane(0, 7, 0), at + 46_500, 1_500, correlation=3 * n + 1, bytes=4),
            Event(Kind.CALL, "cudaStreamSynchronize", lane, at + 50_000, 1_000, correlation=3 * n + 2),
        ]
        if between:
            events.append(Event(Kind.CALL, "cudaLaunchKernel", lane, at + 49_000, 500, correlation=90 + n))
    return Trace.of(events)


@pytest.mark.parametrize(("way", "op"), [("down", "cudaMemcpyAsync"), ("up", "to_device")])
def test_a_copy_and_the_wait_right_after_it_are_one_sync_without_an_operator_around_them(way: str, op: str):
    found = reads_of(bare(way))
    assert [(read.op, len(read.calls)) for read in found] == [(op, 2)] * 3
    assert all(read.blocked > 30_000 for read in found)


def test_what_was_launched_in_between_or_is_pinned_is_waited_for_by_itself():
    assert [read.op for read in reads_of(bare("down", between=True))] == [
        "cudaMemcpyAsync",
        "cudaStreamSynchronize",
    ] * 3
    assert [read.op for read in reads_of(bare("down", host="Pinned"))] == ["cudaStreamSynchronize"] * 3


def test_an_upload_that_the_driver_copies_into_its_own_buffer_holds_the_host_and_waits_for_nothing():
    lane = Lane(1, 1)
    trace = Trace.of(
        [
            Event(Kind.OP, "aten::to", lane, 0, 2_100_000),
            Event(Kind.CALL, "cudaMemcpyAsync", lane, 10_000, 2_000_000, correlation=1),
            Event(Kind.COPY, "Memcpy HtoD (Pageable -> Device)", Lane(0, 7, 0), 200_000, 2_500_000, correlation=1),
            Event(Kind.CALL, "cudaLaunchKernel", lane, 2_200_000, 5_000, correlation=2),
            Event(Kind.KERNEL, "k", Lane(0, 7, 0), 2_800_000, 40_000, correlation=2),
        ]
    )
    (read,) = reads_of(trace)
    assert (read.op, read.blocked, read.held) == ("to_device", 0, 2_000_000)
    (line,) = summarize(trace).lines
    assert line.blocked == 2_000_000, "what is told"
