"""Where a step goes, on drawn timelines: a column is 100 us."""

import dataclasses

import pytest
from analysis.drawn import COLUMN, timeline
from effort import each_kind

from syncscope.analysis.summary import summarize
from syncscope.model.trace import Event, Kind, Lane, Trace
from syncscope.model.uses import Use


def uses(trace: Trace) -> dict[str, float]:
    """What each use takes of all steps, in columns; what takes nothing is left out."""
    found = summarize(trace, prices=False).uses
    assert sum(one.time for one in found.spent) == pytest.approx(found.step)
    return {one.use.value: round(one.time / COLUMN, 2) for one in found.spent if round(one.time / COLUMN, 2)}


def behind(trace: Trace, use: Use) -> dict[str, float]:
    (spent,) = (one for one in summarize(trace, prices=False).uses.spent if one.use == use)
    return {name: round(ns / COLUMN, 2) for name, ns in spent.by}


def with_events(trace: Trace, *events: Event) -> Trace:
    return Trace.of([*trace, *events])


HOST = Lane(1, 1)


def test_a_busy_device_is_all_there_is():
    found = uses(
        timeline("""
        steps 1============|
        host  ab............
        gpu   AAAAAAABBBBBBB
    """)
    )
    assert found == {"compute": 14.0}


def test_idle_time_after_a_wait_is_the_waits_as_far_as_it_was_blocked():
    trace = timeline("""
        steps 1==================|
        host  a.<item   >......b..
        gpu   .AAAAAAAAAA......BBB
    """)
    found = uses(trace)
    assert found["compute"] == 13.0
    assert found["wait"] == pytest.approx(6.0, abs=1.1), "blocked for 9, so all that follows is its own"
    assert list(behind(trace, Use.WAIT)) == ["item"]
    assert sum(found.values()) == 20.0


def test_what_was_enqueued_before_the_recording_is_no_fault_of_launches():
    trace = timeline("""
        steps 1==================|
        host  ab.................
        gpu   ............AAABBBBB
    """)
    assert uses(trace) == {"compute": 8.0, "unexplained": 12.0}
    assert list(behind(trace, Use.UNEXPLAINED)) == ["work that was enqueued before the recording"]
    words = summarize(trace, prices=False).uses.words
    assert words.startswith("For 60% of a step the device had work that was enqueued before the recording")


def test_a_short_wait_does_not_explain_a_long_pause():
    found = uses(
        timeline("""
        steps 1==================|
        host  a<item>..........b..
        gpu   AAAAAAA..........BBB
    """)
    )
    assert found["wait"] == pytest.approx(6.0, abs=0.2)
    assert found["host"] == pytest.approx(4.0, abs=0.2)


def test_the_loader_is_named_where_the_host_is_in_it():
    trace = timeline("""
        steps 1==================|
        host  a................b..
        gpu   AAAAA............BBB
    """)
    loader = Event(
        Kind.ANNOTATION, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", HOST, 6 * COLUMN, 10 * COLUMN
    )
    found = uses(with_events(trace, loader))
    assert found["loader"] == 10.0
    assert found["host"] == pytest.approx(2.0)
    words = summarize(with_events(trace, loader), prices=False).uses.words
    assert words.endswith("stands still because the host loads data: waits are not what holds this loop up.")


def test_other_work_of_the_host_has_the_name_of_the_users_function_or_region():
    trace = timeline("""
        steps 1==================|
        host  a................b..
        gpu   AAAAA............BBB
    """)
    region = Event(Kind.ANNOTATION, "metrics", HOST, 4 * COLUMN, 12 * COLUMN)
    assert behind(with_events(trace, region), Use.HOST) == {"metrics": 12.0}
    operator = Event(Kind.OP, "aten::sort", HOST, 4 * COLUMN, 12 * COLUMN)
    assert behind(with_events(trace, operator), Use.HOST) == {"aten::sort": 12.0}
    assert behind(trace, Use.HOST) == {"what was not recorded": 12.0}


def test_work_that_waits_for_its_launch_makes_launches_the_reason():
    found = uses(
        timeline("""
        steps 1============|
        host  a.b.c.d.e.f.g.
        gpu   .A.B.C.D.E.F.G
    """)
    )
    assert found["compute"] == 7.0
    assert found["launch"] == pytest.approx(7.0)


def test_copies_and_collectives_count_where_no_kernel_runs_beside_them():
    trace = timeline("""
        steps 1============|
        host  abc...........
        gpu   AAAAAAA.......
        gpu2  .....BBBB.....
        gpu3  .......CCCCCCC
    """)
    as_nccl = [dataclasses.replace(e, name="ncclKernel_AllReduce") if e.name == "C" else e for e in trace]
    as_copy = [dataclasses.replace(e, kind=Kind.COPY) if e.name == "B" else e for e in as_nccl]
    assert uses(Trace.of(as_copy)) == {"compute": 7.0, "copy": 2.0, "collective": 5.0}


def test_kernels_being_built_are_no_riddle():
    trace = timeline("""
        steps 1==================|
        host  a................b..
        gpu   AAAAA............BBB
    """)
    build = Event(Kind.COMPILE, "clBuildProgram", HOST, 6 * COLUMN, 9 * COLUMN)
    assert behind(with_events(trace, build), Use.HOST)["building kernels"] == 9.0


def test_each_step_has_its_parts_and_they_are_as_long_as_it():
    report = summarize(
        timeline("""
        steps 1=========|2=========|3=========|4=========|5=========|
        host  a.<item>..b..........c.<item>...d.<item >..e.<item>....
        gpu   .AAAAAAA..BBBBBBBBBB.CCCCCCCC...DDDDDDDDD..EEEEEEEE....
    """),
        prices=False,
    )
    assert len(report.uses.steps) == len(report.steps) == 5
    for step, parts in zip(report.steps, report.uses.steps, strict=True):
        assert sum(parts) == pytest.approx(step.end - step.start, abs=10)
        assert sum(ns for use, ns in zip(Use, parts, strict=True) if not use.is_idle) == pytest.approx(
            step.busy, abs=10
        )


def test_without_steps_it_is_the_recording_and_without_a_device_nothing():
    trace = timeline("""
        host  a.<item   >......b..
        gpu   .AAAAAAAAAA......BBB
    """)
    found = summarize(trace, prices=False).uses
    assert "of a recording" in found.words
    assert found.steps == ()
    assert summarize(trace.take(trace.kind != Kind.KERNEL), prices=False).uses is None


def test_the_words_do_not_acquit_waits_that_cost_much_beside_something_that_costs_more():
    trace = timeline("""
        steps 1============================|
        host  a<item>..............b<item >..
        gpu   AAAAAAA..............BBBBBBBB..
    """)
    loader = Event(Kind.ANNOTATION, "enumerate(DataLoader)#_Iter.__next__", HOST, 7 * COLUMN, 13 * COLUMN)
    words = summarize(with_events(trace, loader), prices=False).uses.words
    assert "because the host loads data; for" in words
    assert "because it had waited" in words
    assert "not what holds" not in words


@pytest.mark.parametrize(
    ("name", "use", "low", "high"),
    each_kind(
        [
            ("v100_resnet50_train_workers0_6steps.pt.trace", "loader", 0.25, 0.45),
            ("v100_resnet50_train_workers4_6steps.pt.trace", "loader", 0.0, 0.01),
            ("h100_owlv2_infer_stacks_80syncs", "wait", 0.2, 0.3),  # its price is 300 of 1,211 ms
            ("mi300x_resnet_train_fsdp8_rank0_stacks", "collective", 0.5, 0.8),
        ],
        lambda one: one[1],
    ),
)
@pytest.mark.xdist_group("real traces")
def test_idle_time_of_real_recordings_is_put_to_its_known_cause(report, name, use, low, high):
    found = report(name).uses
    assert low <= {one.use: one.time for one in found.spent}[use] / found.step <= high


def test_a_wait_has_the_same_idle_time_in_the_step_and_in_its_line():
    """Blocked for 9 columns, it lends to every idle time that follows, not only to the next."""
    trace = timeline("""
        steps 1========================|
        host  a.<item   >..b...c...d....
        gpu   .AAAAAAAAAA..B...C...DDDDD
    """)
    report = summarize(trace, prices=False)
    (line,) = report.lines
    assert line.idle_after == pytest.approx(sum(behind(trace, Use.WAIT).values()) * COLUMN, rel=1e-3)
    assert line.idle_after > 6 * COLUMN
    assert sum(read.idle_after for read in report.reads) == pytest.approx(line.idle_after, abs=1)


def test_the_first_use_of_a_device_is_not_told_as_slow_launches():
    """A cold process: memory and code are asked for, and then a few kernels run."""
    host, queue, ms = Lane(1, 1), Lane(0, 7, 0), 1_000_000
    events = [
        Event(Kind.CALL, "cudaMalloc", host, 0, 40 * ms),
        Event(Kind.CALL, "cudaLaunchKernel", host, 40 * ms, 30 * ms, correlation=1),
        Event(Kind.KERNEL, "first", queue, 70 * ms, ms // 10, correlation=1),
        Event(Kind.CALL, "cudaLaunchKernel", host, 72 * ms, ms // 10, correlation=2),
        Event(Kind.KERNEL, "second", queue, 73 * ms, ms // 10, correlation=2),
    ]
    words = summarize(Trace.of(events)).uses.words
    assert "the host loads kernels, or asks the driver for memory, as at first use" in words
    assert "more slowly" not in words


def cold(asks: str, first: int, slow: int = 2) -> Trace:
    """A process that makes its context in a call that asks for little, then `asks` the driver for something, and launches 40
    times a kernel, of which the first, or launch number `slow`, takes `first` ns."""
    host, queue, ms, us = Lane(1, 1), Lane(0, 7, 0), 1_000_000, 1_000
    events = [
        Event(Kind.CALL, "cudaDeviceGetStreamPriorityRange", host, 0, 300 * ms),
        Event(Kind.CALL, "cudaLaunchKernel", host, 300 * ms, 10 * us, correlation=1),
        Event(Kind.KERNEL, "fill", queue, 300 * ms + 15 * us, 5 * us, correlation=1),
        Event(Kind.CALL, asks, host, 301 * ms, 30 * ms),
    ]
    at = 331 * ms
    for number in range(2, 42):
        call = first if number == slow else 10 * us
        events.append(Event(Kind.CALL, "cudaLaunchKernel", host, at, call, correlation=number))
        events.append(Event(Kind.KERNEL, "gemm", queue, at + call + 5 * us, 5 * us, correlation=number))
        at += call + 20 * us
    return Trace.of(events)


@pytest.mark.parametrize(
    "asks", ["cudaMalloc", "cudaStreamCreateWithPriority", "cuLibraryLoadData", "cudaDeviceGetAttribute"]
)
def test_calls_that_launch_nothing_are_no_launches(asks):
    report = summarize(cold(asks, first=20 * 1_000_000))
    spent = {one.use: one for one in report.uses.spent}
    names = dict(spent[Use.HOST].by)
    assert next(ns for name, ns in names.items() if asks in name) == pytest.approx(30e6, rel=0.01)
    assert next(ns for name, ns in names.items() if "loads its kernel" in name) == pytest.approx(20e6, rel=0.01)
    assert spent[Use.LAUNCH].time < 1e6
    assert report.uses.step == pytest.approx(report.saving_step, rel=0.01), "one length for all that a page says"
    graphs = [one for one in report.what_if if one.name == "launches cost nothing"]
    assert all(one.saving < 2e6 for one in graphs), "of the launches alone"


def test_a_kernel_that_was_launched_before_is_not_loaded_in_a_launch_that_takes_long():
    """As where others have the processor, or a driver's queue is full: it was told as a first use in each step anew."""
    report = summarize(cold("cudaMalloc", first=200 * 1_000_000, slow=20))
    names = dict({one.use: one for one in report.uses.spent}[Use.HOST].by)
    assert not [name for name in names if "loads its kernel" in name]
    assert names["a launch that was held up (cudaLaunchKernel)"] == pytest.approx(200e6, rel=0.01)
