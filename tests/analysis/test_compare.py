from dataclasses import replace

import pytest
from drawn import Device
from test_price import loop
from test_start_causes import masks

from syncscope import kineto
from syncscope.analysis.compare import _alike, compare
from syncscope.analysis.fidelity import came_true
from syncscope.analysis.pace import pace
from syncscope.cli._diff_words import sentence
from syncscope.model.report import Line
from syncscope.model.source import Place
from syncscope.model.trace import DEVICE, Event, Trace

MS = 1_000_000


def record(program):
    return Device().run(program)[0]


def test_a_read_that_went_was_predicted():
    found = compare(record(loop([57, 58])), record(loop([])))
    assert [line.place.line for line in found.gone] == [57, 58]
    assert found.new == found.changed == found.same == ()
    assert found.predicted == pytest.approx(5 * MS, rel=0.01)
    assert found.predicted_range == pytest.approx((found.predicted, found.predicted))
    assert found.work == pytest.approx((5 * MS, 5 * MS))
    assert abs(found.error) < 0.01


def test_a_line_that_moved_is_the_same_and_another_is_new():
    found = compare(record(loop([57])), record(loop([60, 61])))
    assert [(c.before.place.line, c.after.place.line) for c in found.same] == [(57, 60)]
    assert [line.place.line for line in found.new] == [61]
    assert found.gone == ()


def test_reads_of_a_file_that_may_have_another_name_now_are_not_taken_for_gone():
    before, after = record(loop([57, 58])), record(loop([60]))
    found = compare(before, replace(after, places=tuple(replace(p, path="mended.py") for p in after.places)))
    assert [str(place) for place in found.renamed] == ["train.py:57", "mended.py:60"]
    assert found.predicted is None
    assert "the sync at train.py:57 is gone, and one of its kind is at mended.py:60" in sentence(found)
    assert compare(before, after).renamed is None
    assert compare(before, after).predicted is not None


def test_a_read_made_less_often_is_predicted_too():
    often = [*loop([57], 24)]
    seldom = [step if n % 4 == 0 else [x for x in step if x[0] != "read"] for n, step in enumerate(often)]
    found = compare(record(often), record(seldom))
    (change,) = found.changed
    assert change.after.count < 0.3 * change.before.count
    assert abs(found.error) < 0.03


def test_reads_made_one_at_the_end_of_a_step_are_predicted_too():
    batch = [("launch", 0, MS), ("read", 7, 0), ("work", MS)]
    alone = [x for x in batch if x[0] != "read"]
    found = compare(
        record([batch * 5] * 8), record([alone * 4 + [("launch", 0, MS), ("read", 7, 0)] + [("work", MS)]] * 8)
    )
    assert found.before.step == pytest.approx(10 * MS, rel=0.01)
    assert found.after.step == pytest.approx(6 * MS, rel=0.02)
    assert abs(found.error) < 0.02


def test_a_mask_takes_its_gather_with_it_and_what_the_rewrite_adds_is_told():
    before = masks()
    gone = [e for e in before if any(w in e.name for w in ("Memcpy", "count", "gather", "mask_read"))]
    launched = {e.correlation for e in gone if e.kind in DEVICE}
    after = Trace.of(e for e in before if e not in gone and e.correlation not in launched)
    found = compare(before, after)
    assert [line.op for line in found.gone] == ["mask_read"]
    assert found.work == pytest.approx((1.7 * MS, 1.7 * MS))  # forward and backward; the count and the gather went
    assert found.pieces == (2, 2)
    slower = Trace.of(
        Event(**{s: getattr(e, s) for s in Event.__slots__} | ({"duration": MS} if e.name == "backward" else {}))
        for e in after
    )
    assert compare(before, slower).work == pytest.approx((1.7 * MS, 2 * MS))


def test_the_real_pair_of_resnet_loops(shared):
    folder = shared / "traces"
    name = "v100_resnet50_train_workers{}_6steps.pt.trace.json.gz"
    found = compare(kineto.read(folder / name.format(0)), kineto.read(folder / name.format(4)))
    assert found.gone == found.new == ()
    assert found.after.step < 0.8 * found.before.step  # the loader, not a read: no prediction explains it
    assert found.predicted is None


def test_a_host_that_was_not_as_fast_is_found_and_is_noise():
    program = loop([], 24)
    assert pace(record(program), record(program)) == 1.0
    assert pace(record(program), Device(launch=9_000).run(program)[0]) == pytest.approx(3.0)
    assert pace(record(program), record(loop([], 2))) == 1.0  # too few calls to tell
    assert pace(record(program), Trace.of([])) == 1.0  # none: a program of the processor's alone
    found = compare(record(program), record(program))
    longer = replace(found, spread=(0.0, 0.0), after=replace(found.after, step=1.1 * found.before.step))
    assert not longer.within_noise
    assert replace(longer, pace=1.07).within_noise
    for predicted in (1.0, None):
        told = sentence(replace(found, predicted=predicted, error=0.1, pace=1.07))
        assert "1.07 times as long in the second recording" in told


def test_who_waits_some_microseconds_longer_waits_as_before():
    line = Line("item", Place("train.py", 3), 1.0, blocked=60_000.0, idle_after=0.0)
    assert _alike(line, replace(line, blocked=68_000.0), slight=10_000.0)
    assert not _alike(line, replace(line, blocked=90_000.0), slight=10_000.0)


@pytest.mark.parametrize(
    ("predicted", "said", "measured", "came"),
    [
        (0.9, (0.8, 1.2), (0.88, 0.92), True),
        (
            0.9,
            (0.8, 1.2),
            (0.98, 1.02),
            None,
        ),  # it holds the step as it was, and the prediction is not what was measured
        (0.8, (0.7, 0.95), (0.92, 0.94), True),  # within what was promised, and that was a gain
        (0.9, (0.6, 1.3), (1.2, 1.4), False),  # a gain was promised, and it is longer
        (0.9, (0.8, 0.95), (0.97, 1.02), False),
        (0.9, (0.4, 1.4), (0.88, 0.92), None),  # as wide as a step
    ],
)
def test_a_promise_came_true_or_not_or_nobody_can_tell(predicted, said, measured, came):
    assert came_true(predicted, said, measured, 1.0) is came


def test_steps_that_only_another_machine_explains_are_not_comparable():
    found = compare(record(loop([], 24)), record(loop([], 24)))
    longer = replace(found, spread=(0.0, 0.0), after=replace(found.after, step=1.1 * found.before.step), pace=1.07)
    assert longer.within_noise
    assert longer.incomparable == "the machine was not as fast in both"
    assert "The two steps cannot be compared: the machine was not as fast in both." in sentence(longer)
    assert "the host was slower in it." in sentence(longer)
    crowded = replace(found.after.trace, meta={**found.after.trace.meta, "others": 0.88})
    beside = replace(longer, after=replace(longer.after, trace=crowded))
    assert "other programs had the processors, which are the device, for 0% of its time in the first and 88%" in (
        beside.incomparable
    )
    assert not replace(longer, spread=(0.0, longer.after.step)).incomparable, "its own spread explains it"
    assert not replace(longer, pace=1.0).incomparable, "nothing explains it: it is a change"


def test_a_faster_host_explains_no_longer_step_nor_a_slower_one_a_shorter():
    found = compare(record(loop([], 24)), record(loop([], 24)))
    for part, pace_ in ((1.1, 0.93), (0.9, 1.07)):
        other = replace(found.after, step=part * found.before.step)
        told = replace(found, spread=(0.0, 0.0), after=other, pace=pace_)
        assert not told.within_noise
        assert not told.incomparable
        less, likely, more = told.change
        near, far = (less, more) if part > 1 else (more, less)
        assert near == pytest.approx(likely), "the difference is none of the host's"
        assert abs(far) > abs(likely) + 0.05, "it may be more than was measured"
        assert "that is not for the host's speed" in sentence(told)


@pytest.mark.slow  # of the same recordings `cli/test_diff.py` asks what is said
def test_two_programs_may_have_a_few_kernels_in_common(shared):
    """A loop that classifies and one that plays, on one GPU; and one of them, recorded twice."""
    gan, again, policy = (
        kineto.read(shared / "answers" / f"{name}.json.gz") for name in ("gan.wait", "gan.cold", "policy.wait")
    )
    assert "these may be two programs: kernels that both have do 0." in compare(gan, policy).perhaps_others
    assert compare(gan, again).perhaps_others == ""
    assert compare(gan, again).common > 0.9


def test_two_recordings_are_told_apart_alike_whichever_is_the_first():
    """Of two steps of unlike length and spread, on a host that was not as fast in both."""
    quick, slow = (Device().run([[("launch", 0, ms * 1_000_000), ("work", 1_000_000)]] * 8)[0] for ms in (3, 4))
    there, back = compare(quick, slow), compare(slow, quick)
    for spread, slower in (((2e5, 8e5), 1.0), ((2e5, 8e5), 1.1), ((1e4, 9e5), 1.14), ((1e5, 1e4), 1.0)):
        one, other = replace(there, spread=spread, pace=slower), replace(back, spread=spread[::-1], pace=1 / slower)
        assert one.within_noise is other.within_noise
        assert one.incomparable == other.incomparable
