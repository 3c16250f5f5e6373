"""One step that takes far longer than the others, for a checkpoint or a pause, is named and is no part of the mean."""

import pytest
from drawn import Device

from syncscope.analysis.summary import summarize
from syncscope.exporters import _figures as figures
from syncscope.model.answer import Decision
from syncscope.model.uses import Use

MS = 1_000_000
STEP = [("launch", 0, 5 * MS), ("read", 57, 0), ("work", 2 * MS)]


def loop(steps=20, **instead):
    """A loop that waits for 5 ms of its device in each step, and for which the host then works for 2; some steps are others."""
    others = {int(at.removeprefix("at")): step for at, step in instead.items()}
    return Device().run([others.get(n, STEP) for n in range(steps)])[0]


PAUSE = [*STEP, ("work", 2_000 * MS)]
EVALUATION = [*STEP, *[("launch", 0, 20 * MS)] * 10, ("read", 60, 0)]


@pytest.mark.parametrize("step", [PAUSE, EVALUATION])
@pytest.mark.parametrize("at", [5, 10, 16])
def test_a_step_that_does_something_else_is_set_aside_and_named(step, at):
    usual, report = summarize(loop()), summarize(loop(**{f"at{at}": step}))
    assert report.step == pytest.approx(usual.step, rel=0.01)
    assert report.answer.decision is usual.answer.decision is Decision.FIX
    assert report.answer.share == pytest.approx(usual.answer.share, abs=0.03)
    assert [s.index for s in report.steps if s.outlying] == [at]
    assert report.notes[0].startswith(f"step {at} took ")
    assert f"in a row without step {at}, far longer than others" in figures.counted(report)


def test_a_wait_for_what_is_done_once_is_no_share_of_the_steps_behind_it():
    ahead = [("launch", 0, MS), ("work", 5 * MS)]
    report = summarize(Device().run([[*ahead, *EVALUATION] if n == 5 else ahead for n in range(20)])[0])
    assert [s.index for s in report.steps if s.outlying] == [5]
    assert next(spent.time for spent in report.uses.spent if spent.use is Use.WAIT) == 0
    assert not any(row.idle for row in report.by_line.lines if row.place and row.place.line == 60)


def test_nothing_is_set_aside_of_a_usual_loop():
    report = summarize(loop())
    assert not any(step.outlying for step in report.steps)
    assert not any("figures are of the longest run" in note for note in report.notes)


def test_what_comes_in_every_fifth_step_belongs_to_the_loop():
    report = summarize(loop(steps=21, **{f"at{n}": PAUSE for n in range(4, 21, 5)}))
    assert not any(step.outlying for step in report.steps)
    assert report.step > 100 * MS


def test_a_host_that_runs_ahead_and_waits_in_a_late_step_is_no_pause():
    """Its marks are of the host: the step that waits is long, and the device has done no more for it."""
    ahead = [("launch", 0, 5 * MS), ("work", 100_000)]
    report = summarize(Device().run([ahead if n != 15 else [*ahead, ("read", 57, 0)] for n in range(20)])[0])
    assert not any(step.outlying for step in report.steps)


def test_of_a_few_steps_all_are_counted():
    report = summarize(loop(steps=3, at1=PAUSE))
    assert not any(step.outlying for step in report.steps)
