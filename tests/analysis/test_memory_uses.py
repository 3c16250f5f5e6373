"""Memory over time, from allocations that are drawn: `+name bytes` takes, `-name` gives back."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscope import kineto
from syncscope.analysis.memory import POINTS, memory_uses
from syncscope.model.memory import Allocations
from syncscope.model.report import Step
from syncscope.model.source import Place
from syncscope.model.trace import Event, Kind, Lane, Trace

HOST = Lane(1, 1)


def recorded(*rows, before=0, known=True, events=(), places=()):
    """A trace whose allocations are `(time, address, bytes, place)`."""
    total, told = before, []
    for time, address, size, place in rows:
        total += size
        told.append((time, address, size, total if known else -1, 4096, 0, 0, place))
    trace = Trace.of(events or [Event(Kind.OP, "aten::empty", HOST, 0, 1000)])
    return dataclasses.replace(trace, memory=Allocations.of(told), places=(*trace.places, *places))


A, B = Place("a.py", 1), Place("b.py", 2)


def test_the_high_water_mark_is_whose_what_was_not_freed_by_then_is():
    rows = [(10, 1, 100, 0), (20, 2, 50, 1), (30, 1, -100, -1), (40, 3, 30, 0), (50, 4, 40, 0), (60, 2, -50, -1)]
    (found,) = memory_uses(recorded(*rows, before=1000, places=(A, B)), [Step(7, 0, 15, 0), Step(8, 15, 45, 0)])
    assert (found.before, found.peak, found.peak_at, found.step) == (1000, 1150, 20, 8)
    assert [(one.name, one.bytes, one.count) for one in found.held] == [
        ("from before the recording", 1000, 0),
        ("a.py:1", 100, 1),
        ("b.py:2", 50, 1),
    ]
    assert (found.made_by.name, found.made_by.bytes) == ("b.py:2", 50)
    assert found.curve.tolist() == [[10, 1000], [10, 1100], [20, 1150], [30, 1050], [40, 1080], [50, 1120], [60, 1070]]


def test_an_address_that_is_used_again_is_counted_once():
    rows = [(10, 1, 100, 0), (20, 1, -100, -1), (30, 1, 70, 1), (40, 2, 60, 1)]
    (found,) = memory_uses(recorded(*rows, places=(A, B)))
    assert [(one.name, one.bytes, one.count) for one in found.held] == [("b.py:2", 130, 2)]


def test_what_was_there_before_and_is_freed_is_not_there_any_more():
    (found,) = memory_uses(recorded((10, 9, -600, -1), (20, 1, 900, 0), before=1000, places=(A,)))
    assert [(one.name, one.bytes) for one in found.held] == [("a.py:1", 900), ("from before the recording", 400)]


def test_where_there_only_was_less_the_most_is_at_the_beginning():
    (found,) = memory_uses(recorded((10, 9, -600, -1), (20, 1, 100, 0), before=1000, places=(A,)))
    assert (found.peak, found.peak_at, found.made_by.bytes) == (1000, 10, 0)
    assert [(one.name, one.bytes) for one in found.held] == [("from before the recording", 1000)]


def test_without_a_line_it_is_the_users_function_or_the_operator_around():
    events = [
        Event(Kind.PYTHON, "train.py(3): forward", HOST, 0, 100, place=Place("train.py", 3)),
        Event(Kind.PYTHON, "torch/nn/functional.py(9): relu", HOST, 5, 90, place=Place("torch/nn/functional.py", 9)),
        Event(Kind.OP, "aten::relu", HOST, 10, 50),
        Event(Kind.OP, "aten::empty", HOST, 12, 20),
        Event(Kind.OP, "aten::add", HOST, 200, 50),
        Event(Kind.OP, "aten::empty", HOST, 210, 20),
    ]
    (found,) = memory_uses(recorded((15, 1, 100, -1), (215, 2, 50, -1), (400, 3, 10, -1), events=events))
    names = [(one.name, one.bytes) for one in found.held]
    assert names == [("forward() (train.py:3)", 100), ("aten::add", 50), ("no line known", 10)]


def test_traces_of_2021_tell_no_totals_and_the_least_is_said():
    (found,) = memory_uses(recorded((10, -1, 100, -1), (20, -1, -400, -1), (30, -1, 50, -1), known=False))
    assert (found.exact, found.peak, found.held) == (False, 400, ())


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 10**6)), min_size=1, max_size=200))
def test_what_is_held_adds_up_to_the_mark_for_whatever_is_allocated(asked):
    alive, rows = {}, []
    for time, (address, size) in enumerate(asked):
        rows.append((time, address, -alive.pop(address) if address in alive else alive.setdefault(address, size), -1))
    (found,) = memory_uses(recorded(*rows))
    assert sum(one.bytes for one in found.held) == found.peak == max(found.curve[:, 1])


def test_a_long_curve_keeps_its_highest_points():
    rows = [(n, n, 1 if n != 77_777 else 10**6, -1) for n in range(100_000)]
    (found,) = memory_uses(recorded(*rows))
    assert len(found.curve) <= POINTS + 1
    assert found.peak == max(found.curve[:, 1]) == 10**6 + 99_999


def test_real_recordings_have_theirs(shared):
    (found,) = memory_uses(kineto.read(shared / "traces" / "h100_owlv2_infer_stacks_80syncs.json.gz"))
    assert (found.peak, found.reserved, found.exact) == (2_707_847_680, 3_600_809_984, True)
    assert sum(one.bytes for one in found.held) == found.peak
    assert found.made_by.name.startswith("forward() (transformers/models/owlv2/modeling_owlv2.py")
    file = shared / "traces" / "v100_resnet50_train_workers4_6steps.pt.trace.json.gz"
    assert memory_uses(kineto.read(file))[0].exact is False


@pytest.mark.parametrize("kept", [0, 1])
def test_a_recording_without_allocations_has_none(kept):
    trace = recorded((10, 1, 100, -1))
    assert memory_uses(dataclasses.replace(trace, memory=trace.memory.take(slice(0, 0)) if kept else None)) == ()
