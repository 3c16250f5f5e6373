"""Of long recordings some steps are replayed, and tell what all of them tell."""

import pytest
from simulated import US, Machine

from syncscope.analysis import some_steps
from syncscope.analysis.event_graph import event_graph_of
from syncscope.analysis.some_steps import replayed_of, replayed_steps
from syncscope.analysis.summary import summarize

SHORT = [("launch", 0, 60 * US)] * 8 + [("item", 0), ("work", 40 * US)]
LONG = [("launch", 0, 60 * US)] * 24 + [("item", 0), ("work", 80 * US)]
RARE = [*SHORT, ("launch", 0, 3_000 * US), ("stream", 0)]


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """As if any recording were long."""
    monkeypatch.setattr(some_steps, "MOST", 100)


def recorded(*steps):
    machine = Machine(1)
    machine.run(list(steps))
    return machine.trace()


def replayed(trace):
    """Which steps are counted in what is replayed."""
    chosen = replayed_steps(trace, event_graph_of(trace))
    return [step.index for step in chosen.steps[1:-1]]


def test_steps_in_the_middle_are_replayed_and_tell_the_same(monkeypatch):
    trace = recorded(*[SHORT] * 60)
    steps = replayed(trace)
    assert steps == list(range(steps[0], steps[0] + 10))
    assert 20 < steps[0] < 30
    some = summarize(trace)
    monkeypatch.setattr(some_steps, "MOST", 10**6)
    every = summarize(trace)
    assert some.saving == pytest.approx(every.saving, rel=0.03)
    assert some.saving_step == pytest.approx(every.saving_step, rel=0.01)
    assert some.saving_range[0] <= every.saving <= some.saving_range[1]
    assert [line.count for line in some.lines] == [line.count for line in every.lines] == [1.0]
    assert len(some.reads) == len(every.reads) == 60
    assert some.steps == every.steps
    said = f"of 10 of 60 steps ({steps[0] + 1} to {steps[-1] + 1})"
    assert any(said in note for note in some.notes)
    assert not any(said in note for note in every.notes)


def test_what_comes_every_third_time_is_there_as_often():
    trace = recorded(*[SHORT, SHORT, LONG] * 20)
    steps = replayed(trace)
    assert len(steps) == 12  # the least number from ten on of which a third is long
    assert sum(step % 3 == 2 for step in steps) == 4


def test_where_no_part_speaks_for_all_everything_is_replayed():
    trace = recorded(*[SHORT] * 20, LONG * 5, *[SHORT] * 39)  # it is in no half of the steps as rarely
    whole = event_graph_of(trace)
    assert replayed_steps(trace, whole) is whole
    assert replayed_of(whole.steps, whole) == ()


def test_a_rare_wait_that_costs_is_in_what_is_replayed():
    trace = recorded(*[*[SHORT] * 13, RARE] * 4)
    steps = replayed(trace)
    report = summarize(trace)
    assert any(step % 14 == 13 for step in steps)
    assert len(report.lines) == 2
    assert all(line.price is not None and line.price.share > 0 for line in report.lines)


def test_few_steps_are_all_replayed():
    trace = recorded(*[SHORT] * 15)
    whole = event_graph_of(trace)
    assert replayed_steps(trace, whole) is whole
