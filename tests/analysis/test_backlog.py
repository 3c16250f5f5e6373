"""A profiler begins while the host is ahead: the device has earlier steps to do, which are no part of those recorded."""

from dataclasses import replace

import pytest
from drawn import COLUMN, timeline

from syncscope.analysis.event_graph import event_graph_of
from syncscope.analysis.job import job
from syncscope.analysis.rank import rank_of
from syncscope.analysis.summary import summarize
from syncscope.kineto import read

AHEAD = """
    steps  1==|2==|3==|
    host   a...b...c...
    gpu    XXXXXXXXYYYYYYYYAAAAAAAABBBBBBBBCCCCCCCC
"""
NOT_AHEAD = """
    steps  1=======|2=======|3=======|
    host   a.<item >b.<item >.c.<item >
    gpu    .AAAAAAA..BBBBBBB...CCCCCCC.
"""
LOST = """
    steps  1==========|2=========|
    host   .......b.<item >.c.<item >
    gpu    .XXXXX..BBBBBBB...CCCCCCC.
"""


def test_a_step_begins_where_the_device_has_done_those_before():
    report = summarize(timeline(AHEAD))
    assert [(step.end - step.start) / COLUMN for step in report.steps] == [8, 8, 8]
    assert report.step == 8 * COLUMN
    assert report.saving_step == pytest.approx(8 * COLUMN)
    assert report.device_busy == 1.0
    assert any(
        "busy with what was enqueued before the recording: the first step begins there" in n for n in report.notes
    )


def test_without_earlier_work_steps_are_as_the_host_marks_them():
    event_graph = event_graph_of(timeline(NOT_AHEAD))
    assert event_graph.steps == event_graph.marked
    assert event_graph.graph().begin == 0.0


def test_work_that_was_over_before_the_host_launched_any_has_lost_its_launches_or_was_not_ahead():
    event_graph = event_graph_of(timeline(LOST))
    assert event_graph.steps == event_graph.marked
    assert event_graph.graph().begin == 0.0


def test_a_step_of_a_job_begins_where_the_last_rank_comes_to_it():
    shorter = AHEAD.replace("XXXXXXXXYYYYYYYY", "XXXXXXXXYYYY")
    found = job([rank_of(timeline(drawn), number) for number, drawn in enumerate((AHEAD, shorter))])
    assert found.step == pytest.approx(8 * COLUMN)
    assert any("the devices of ranks 0 for 1.6 ms, 1 for 1.2 ms did what was enqueued before" in n for n in found.notes)


def test_who_was_late_before_the_recording_is_not_asked():
    trace = timeline(AHEAD)
    names = {"Y": "ncclKernel_AllReduce(x)", "B": "ncclKernel_AllReduce(x)"}
    trace = replace(trace, names=tuple(names.get(name, name) for name in trace.names))
    (met,) = rank_of(trace, 0).collectives
    assert met.key.step == 2


DRAINED = """
    steps  1======================|
    host   .<sync   >a.b..c<item >
    gpu    XXXXYYYYY..AA.BB.CCCCC.
"""
BEFORE_STEPS = """
    steps             1===========|
    host   .<sync   >.a.b..c<item >
    gpu    XXXXYYYYY...AA.BB.CCCCC.
"""


def test_a_wait_for_what_was_enqueued_before_is_the_programs_where_it_stands_in_a_step():
    report = summarize(timeline(DRAINED))
    (sync,) = (line for line in report.lines if line.op == "cudaDeviceSynchronize")
    assert sync.blocked == pytest.approx(8 * COLUMN)
    assert sync.idle_after == pytest.approx(2.2 * COLUMN)
    assert any("busy with what was enqueued before the recording" in note for note in report.notes)
    assert "first use" not in str(report.uses)


def test_a_wait_before_all_steps_is_the_recorders_own():
    report = summarize(timeline(BEFORE_STEPS))
    assert [line.op for line in report.lines] == ["item"]


def test_nothing_is_waited_for_where_nothing_was_enqueued_before():
    report = summarize(timeline(DRAINED.replace("XXXXYYYYY", ".........")))
    assert [line.op for line in report.lines] == ["item"]


def test_a_synchronize_of_a_harness_before_the_first_launch_is_told(shared):
    report = summarize(read(shared / "traces" / "h100_qwen1.5_infer_stacks.json.gz"))
    (sync,) = (line for line in report.lines if line.op == "cudaDeviceSynchronize")
    assert sync.blocked == pytest.approx(14.09e6, rel=1e-3)
    assert report.fidelity == pytest.approx(0, abs=0.01)
