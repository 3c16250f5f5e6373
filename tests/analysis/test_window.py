import pytest

from syncscope.analysis.window import only_steps
from syncscope.errors import UserError
from syncscope.model.report import Step
from syncscope.model.trace import Event, Kind, Lane, Trace

HOST, QUEUE = Lane(1, 1), Lane(1, 7, 0)
STEPS = tuple(Step(10 + n, 100 * n, 100 * n + 90, 0) for n in range(4))


@pytest.fixture
def trace():
    events = [Event(Kind.STEP, f"ProfilerStep#{s.index}", HOST, s.start, s.end - s.start) for s in STEPS]
    events.append(Event(Kind.OP, "around all", HOST, 0, 400))
    for n, step in enumerate(STEPS):
        events.append(Event(Kind.CALL, f"launch {n}", HOST, step.start + 80, 5, correlation=n))
        events.append(Event(Kind.KERNEL, f"late {n}", QUEUE, step.start + 110, 50, correlation=n))
        events.append(Event(Kind.KERNEL, f"of nobody {n}", QUEUE, step.start + 50, 5, correlation=100 + n))
    return Trace.of(events)


@pytest.mark.parametrize(
    ("first", "last", "kept"),
    [(11, 13, {1, 2}), (None, 11, {0}), (13, None, {3}), (None, None, {0, 1, 2, 3}), (9, 99, {0, 1, 2, 3})],
)
def test_steps_are_kept_with_the_work_they_launched(trace, first, last, kept):
    names = {e.name for e in only_steps(trace, first, last)}
    assert names == {"around all"} | {f"ProfilerStep#{10 + n}" for n in kept} | {
        f"{what} {n}" for what in ("launch", "late", "of nobody") for n in kept
    }


@pytest.mark.parametrize(("steps", "hint"), [(STEPS, "it has the steps 10 to 13"), ((), "no step is marked in it")])
def test_steps_that_are_not_there(trace, steps, hint):
    with pytest.raises(UserError) as error:
        only_steps(trace if steps else trace.take(trace.kind != Kind.STEP), 20, 30)
    assert error.value.hint == hint
