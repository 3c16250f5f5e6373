"""A loop that waits in each pass, and the simulated run in which all its passes are one."""

import dataclasses

import numpy as np
import pytest
from analysis.drawn import Device

from syncscope.analysis.summary import summarize
from syncscope.model.source import Place
from syncscope.model.trace import Kind, Trace

US = 1_000
READ = Place("loss.py", 57)
PASS = [("work", 40 * US), ("launch", 0, 20 * US), ("work", 40 * US), ("launch", 0, 20 * US), ("read", 57, 0)]
NETWORK = [
    *[("work", 30 * US), ("launch", 0, 200 * US)] * 4,
    ("launch", 0, 2 * US),
]  # of which one takes as long as any


def recorded(steps) -> Trace:
    trace = Device().run(steps)[0]
    events = []
    for event in trace:
        if event.kind == Kind.CALL and event.correlation >= 0:
            event = dataclasses.replace(event, place=Place("loss.py", 55 if event.duration else 56))
        events.append(event)
    return Trace.of(events)


def place_of_reads(trace: Trace) -> Place:
    rows = trace.rows(Kind.READ)
    return trace.places[int(trace.place[rows][0])]


def length(steps) -> float:
    return summarize(Device().run(steps)[0]).saving_step or 0.0


def rows(trace: Trace, loops) -> dict[str, object]:
    return {one.name: one for one in summarize(trace, loops=loops).what_if}


def test_all_passes_but_one_go_and_what_their_kernels_compute_stays():
    steps = [[*NETWORK, *PASS * 8]] * 8
    trace = recorded(steps)
    place = place_of_reads(trace)
    found = rows(trace, {place: 50})
    (row,) = (one for name, one in found.items() if "made at once" in name)
    assert row.name.startswith("the 8 passes of the loop at ")
    at_once = [("work", 40 * US), ("launch", 0, 8 * 20 * US), ("work", 40 * US), ("launch", 0, 8 * 20 * US)]
    truth = length(steps) - length([[*NETWORK, *at_once]] * 8)
    assert row.saving == pytest.approx(truth, rel=0.15)
    assert row.low <= truth <= row.high <= row.bound
    assert row.saving > found["nothing waits"].saving, "the waits are a part of it"


@pytest.mark.parametrize("loops", [{}, {Place("loss.py", 999): 998}], ids=["not known to be apart", "of another line"])
def test_only_of_loops_whose_passes_need_nothing_of_one_another(loops):
    assert not [name for name in rows(recorded([[*NETWORK, *PASS * 8]] * 8), loops) if "made at once" in name]


def test_two_passes_are_no_loop():
    trace = recorded([[*NETWORK, *PASS * 2]] * 8)
    assert not [name for name in rows(trace, {place_of_reads(trace): 50}) if "made at once" in name]


def test_no_step_becomes_shorter_than_the_device_works():
    steps = [[*NETWORK, *[("launch", 0, 900 * US), ("read", 57, 0)] * 6]] * 8
    trace = recorded(steps)
    found = [one for name, one in rows(trace, {place_of_reads(trace): 50}).items() if "made at once" in name]
    step = length(steps)
    assert all(one.saving <= step - np.float64(5 * 900 * US) for one in found)


def test_the_answer_takes_the_loop_along_and_says_what_its_waits_cost_alone():
    trace = recorded([[*NETWORK, *PASS * 8]] * 12)
    plain, report = summarize(trace), summarize(trace, loops={place_of_reads(trace): 50})
    at_once = [("work", 40 * US), ("launch", 0, 8 * 20 * US), ("work", 40 * US), ("launch", 0, 8 * 20 * US)]
    truth = 1 - length([[*NETWORK, *at_once]] * 12) / plain.saving_step
    assert plain.answer.along == ""
    assert report.answer.along.startswith("the passes of the loop at ")
    assert report.answer.offered == pytest.approx(plain.answer.share)
    assert plain.answer.share < report.answer.share <= report.answer.most
    assert report.answer.low <= truth <= report.answer.high <= report.answer.bound
    assert report.of_waits.share == pytest.approx(plain.answer.share)
    assert f"Without waits alone, if {report.answer.along} stays, it is likely" in report.verdict


def test_passes_that_compute_a_network_are_batches_and_stay():
    trace = recorded([[*NETWORK, *PASS * 8]] * 12)
    loops = {place_of_reads(trace): 50}
    layers = Trace.of(
        dataclasses.replace(event, name=f"sgemm_{event.name}") if event.kind == Kind.KERNEL else event
        for event in trace
    )
    assert summarize(trace, loops=loops).answer.along
    assert not summarize(layers, loops=loops).answer.along


OTHER = [("work", 40 * US), ("launch", 0, 20 * US), ("read", 91, 0)]


def test_a_loop_that_runs_once_in_an_epoch_is_no_part_of_a_step():
    steps = [[*NETWORK, ("read", 57, 0), *OTHER * (12 * (n == 4))] for n in range(12)]
    trace = recorded(steps)
    report = summarize(trace, loops={Place("train.py", 91): 90})
    assert any(read.place == Place("train.py", 91) for read in report.reads), "it was recorded"
    assert report.answer.along == ""
    assert "made at once" not in report.verdict
    assert not [one for one in report.what_if if "made at once" in one.name]


def test_loops_are_named_in_the_order_of_their_lines_however_they_came():
    trace = recorded([[*NETWORK, *PASS * 8, *OTHER * 8]] * 12)
    loops = {Place("train.py", 91): 90, Place("train.py", 57): 50}
    said = [summarize(trace, loops=dict(order)).answer.along for order in (loops.items(), reversed(loops.items()))]
    assert said[0] == said[1]
    assert said[0].index("train.py:50") < said[0].index("train.py:90")


def test_a_line_that_waits_twice_in_a_pass_makes_as_many_passes_as_one_that_waits_once():
    """`total += a.item() * b.item()`: its sixteen waits were told as sixteen passes."""
    trace = recorded([[*NETWORK, *[*PASS, ("work", 10 * US), ("launch", 0, 20 * US), ("read", 57, 0)] * 8]] * 8)
    reads = trace.rows(Kind.READ)
    column = trace.column.copy()
    column[reads] = np.where(np.arange(len(reads)) % 2, 23, 10)
    trace = dataclasses.replace(trace, column=column)
    (told,) = (name for name in rows(trace, {place_of_reads(trace): 50}) if "made at once" in name)
    assert told.startswith("the 8 passes of the loop at ")
