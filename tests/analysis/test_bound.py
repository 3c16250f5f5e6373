"""What no fix of waits can pass: it holds for programs that a simulated machine then ran without them, and it is said first."""

from dataclasses import replace

import pytest
from drawn import COLUMN, device_early, timeline
from effort import EFFORT
from simulated import Machine, random_program
from test_simulated import FAMILIES

from syncscope.analysis.bound import bound_of
from syncscope.analysis.event_graph import event_graph_of
from syncscope.analysis.price import timed_part
from syncscope.analysis.summary import summarize
from syncscope.model.bound import Left, SavingBound


@pytest.mark.parametrize("family", FAMILIES)
def test_a_step_without_waits_is_no_shorter(family):
    what, how = FAMILIES[family]
    for seed in range(8 if EFFORT >= 1 else 1):
        machine, program = Machine(seed, **how), random_program(seed, **what)
        machine.run(program)
        event_graph = event_graph_of(machine.trace())
        graph = event_graph.graph()
        found, window = bound_of(event_graph, graph, True), timed_part(graph)
        true = machine.run(program, waits=False)
        least = (true[window.last] - true[window.first]) / window.steps
        assert max(found.device, found.host) <= least * 1.01
        assert found.least <= least * 1.03  # a replay may be so far off


BUSY = """
steps  1=========|2=========|3=========|4=========|5=========|
host   a..<item  >b..<item  >c..<item  >d..<item  >e..<item  >
gpu    .AAAAAAAAA..BBBBBBBB..CCCCCCCC...DDDDDDDD...EEEEEEEE...
"""


def test_a_busy_device_leaves_little_to_be_had():
    report = summarize(timeline(BUSY))
    assert report.bound.left is Left.DEVICE
    assert report.bound.share == pytest.approx(1 - report.bound.device / report.bound.step)
    assert report.saving <= report.bound.saving
    assert f"Fixing all waits saves at most {report.bound.share:.1%} of a step: the device works" in report.verdict


def test_it_is_said_where_no_price_is_given():
    trace = timeline("""
        host   ...a.<item  >..b.<item  >..c..
        gpu    ....AAAAAAAA....BBBBBBBB....CC
    """)
    report = summarize(device_early(trace, 8 * COLUMN))
    assert report.saving is None
    assert "No savings" in report.verdict
    assert "Fixing all waits saves at most " in report.verdict
    assert 0 < report.bound.share < 1
    assert report.bound.chain == 0  # it would rest on a replay


def test_how_well_the_length_of_a_step_is_known_is_counted_in():
    """Two steps ran unrecorded: of one as long as their median may be, more may be saved."""
    report = summarize(timeline(BUSY))
    trace, step = report.trace, round(report.saving_step)
    known = {"median_ns": step, "low_ns": round(0.96 * step), "high_ns": step, "left_out": 0}
    few, many = (
        summarize(replace(trace, meta=trace.meta | {"untraced": known | {"steps": steps}})).bound for steps in (2, 200)
    )
    assert few.share > many.share + 0.02 * (1 - many.share)
    assert few.least == pytest.approx(many.least)
    assert few.saving == pytest.approx(few.share * few.step)


def test_nothing_can_be_saved_beyond_a_step():
    assert SavingBound(step=10.0, device=12.0, host=3.0).share == 0.0
    assert SavingBound(step=10.0, device=4.0, host=9.0, chain=9.05).left is Left.HOST


def test_a_bound_above_what_the_device_is_idle_says_what_else_would_go():
    """Device busy 90 %, and at most 60 %: others had its processors for 80 % of its time; or the waits launched what goes."""
    beside_others = SavingBound(100.0, 18.0, 40.0, others=0.8)
    assert beside_others.share == pytest.approx(0.6)
    said = beside_others.words(busy=0.9)
    assert (
        "saves at most 60.0% of a step, and more than the 10.0% in which the device is idle only if other programs, which had"
        in said
    )
    assert "what the device does for the waits" in SavingBound(100.0, 18.0, 40.0).words(busy=0.9)
    for busy in (0.4, None):
        assert "only if" not in beside_others.words(busy=busy)
