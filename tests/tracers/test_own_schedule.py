"""Without a number a recording chooses its steps: not the program's first, some without a recording before and after."""

import re
import time

import pytest

from syncscope.model.trace import Kind
from syncscope.tracers import process_recording, step_times
from syncscope.tracers import session as sessions
from syncscope.tracers.own_schedule import ENOUGH, LONGEST, MOST, OwnSchedule, Phase
from syncscope.tracers.session import Session
from syncscope.tracers.sources import Source

MS = 1_000_000


def phases(lengths, built=None):
    """What is done with each of the steps after these."""
    schedule = OwnSchedule()
    return [
        schedule.step(round(length * MS), count)
        for length, count in zip(lengths, built or [0] * len(lengths), strict=True)
    ]


def test_the_first_steps_are_let_pass_until_a_few_are_alike():
    found = phases([900, 50, 30, 20, 11, 10, 10, 10, 10, 10])
    assert found.index(Phase.BEFORE) == 7  # after 11, 10, 10, 10
    still = phases([10 * 2 ** (n % 2) for n in range(MOST[Phase.OPENING] - 1)])
    assert set(still) == {Phase.OPENING}


def test_a_step_that_builds_kernels_is_no_measure():
    built = [0, 0, 0, 9, 9, 9, 9, 9, 9, 9]
    assert phases([10] * 10, built).index(Phase.BEFORE) == 7  # four after it


def test_each_phase_has_enough_of_them_and_is_over_then():
    found = phases([10] * 400)
    assert [found.count(phase) for phase in (Phase.BEFORE, Phase.RECORDED, Phase.AFTER)] == [5, 25, 10]
    assert found[-1] is Phase.OVER
    brief = phases([0.2] * 1000)
    assert brief.count(Phase.RECORDED) == MOST[Phase.RECORDED]


def test_steps_that_differ_are_recorded_until_they_tell_what_one_takes():
    """To within 3 %, or so many as there is room for."""
    lengths = [10 + 2 * (n * 7 % 5) for n in range(400)]  # from 10 to 18
    restless = phases([10] * 10 + lengths).count(Phase.RECORDED)
    assert 60 < restless <= MOST[Phase.RECORDED]
    assert phases([10] * 10 + [10 + n % 2 / 10 for n in range(400)]).count(Phase.RECORDED) < 30
    wild = phases([1] * 40 + [3 ** (n % 3) for n in range(400)]).count(Phase.RECORDED)
    assert wild == MOST[Phase.RECORDED]


def test_long_steps_are_few():
    found = phases([2_000] * 30)
    assert found.count(Phase.RECORDED) * 2_000 * MS <= 4 * LONGEST[Phase.RECORDED]
    assert found.index(Phase.RECORDED) <= 10


def test_it_says_which_steps_and_why():
    schedule = OwnSchedule()
    for _ in range(100):
        schedule.step(10 * MS, 0)
    assert schedule.words(False) == (
        "steps 10 to 34 of 100 are recorded (the first is 0): the first 5 warmed up, "
        "15 more were timed without a recording, to know what it weighs"
    )


def test_where_too_few_steps_follow_it_says_how_many_a_program_has_to_make():
    schedule = OwnSchedule()
    for _ in range(10):
        schedule.step(10 * MS, 0)
    rest = "too few follow to record those instead, and a program of 24 or more has enough"
    assert schedule.words(True) == f"the first 5 of 10 steps are recorded: {rest}"


@pytest.mark.parametrize("ns", [30_000, 200_000, MS, 10 * MS])
def test_a_program_of_as_many_steps_as_it_says_has_enough(ns):
    few = OwnSchedule()
    for _ in range(11):
        few.step(ns, 0)
    enough = OwnSchedule()
    for _ in range(int(re.search(r"a program of (\d+) or more", few.words(True))[1])):
        enough.step(ns, 0)
    assert enough.steps[Phase.RECORDED] >= ENOUGH


def test_nothing_is_said_where_the_opening_was_all():
    schedule = OwnSchedule()
    for _ in range(5):
        schedule.step(10 * MS, 0)
    assert schedule.phase is Phase.BEFORE
    assert schedule.words(True) == ""


class Clock:
    """Moves by what sleeps, and by a microsecond a look."""

    def __init__(self):
        self.now = time.monotonic_ns()

    def sleep(self, seconds):
        self.now += round(seconds * 1e9)

    def monotonic_ns(self):
        self.now += 1000
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """A machine that does other things is slow for as long as they take, and a schedule goes by what steps take."""
    drawn = Clock()
    monkeypatch.setattr(time, "sleep", drawn.sleep)
    for module in (time, sessions, step_times):
        monkeypatch.setattr(module, "monotonic_ns", drawn.monotonic_ns)


def run(count, ms=4.0, **options):
    with Session(**options) as session:
        for _ in range(count):
            time.sleep(ms / 1000)
            session.step()
    return session, [e for e in session.trace if e.kind is Kind.STEP]


def test_a_loop_has_its_baseline_and_is_then_only_counted():
    session, steps = run(160)
    assert session.count == 160
    assert 50 <= len(steps) < 80
    for kind in ("untraced", "traced"):
        assert session.trace.meta[kind]["median_ns"] == pytest.approx(4e6, rel=0.01)
    assert "warmed up" in session.trace.meta["notes"][0]
    counted = {
        kind: facts["steps"] + facts["left_out"]
        for kind in ("untraced", "traced")
        for facts in [session.trace.meta[kind]]
    }
    assert counted["traced"] == len(steps), "those after it are timed as what they are"
    assert counted["untraced"] > 5, "so those before it are not all"


def test_of_a_short_loop_there_is_what_there_is():
    session, steps = run(4)
    assert len(steps) == 4
    session, steps = run(9)
    assert len(steps) == 5  # the opening
    assert session.trace.meta["notes"]


def test_everything_is_recorded_where_that_is_asked_for():
    for options in ({"whole": True}, {"memory": True}):
        session, steps = run(60, 1.0, **options)
        assert len(steps) == 60
        assert "untraced" not in session.trace.meta


def test_what_needs_no_steps_is_recorded_from_the_begin():
    with Session() as session:
        time.sleep(0.01)
    assert not [e for e in session.trace if e.kind is Kind.STEP]
    assert session.trace.meta["recorder"] == "syncscope"


def test_a_recording_within_another_has_its_own_steps():
    with Session() as outer, Session(active=3) as inner:
        for _ in range(60):
            time.sleep(0.002)
            outer.step()
            inner.step()
    assert len([e for e in inner.trace if e.kind is Kind.STEP]) == 3
    assert len([e for e in outer.trace if e.kind is Kind.STEP]) >= 5


def test_a_recording_that_chooses_its_steps_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    for count in (3, 8, 14, 120):
        run(count, 1.0)
        assert not list(tmp_path.iterdir())


def test_a_source_that_has_ended_hears_of_no_step_that_goes_on(monkeypatch):
    """torch.profiler's began at the next step, on CUDA, once CUPTI's had ended: it ran for the rest of the program."""
    heard = []

    class Heard(Source):
        def start(self, events):
            heard.append("start")

        def boundary(self):
            heard.append("step")

        def stop(self):
            heard.append("stop")

    monkeypatch.setattr(process_recording, "known_sources", lambda: {"heard": Heard})
    with Session() as session:
        for _ in range(300):
            time.sleep(0.001)
            session.step()
    follows = [after for word, after in zip(heard, [*heard[1:], "start"], strict=True) if word == "stop"]
    assert follows
    assert set(follows) == {"start"}
    assert heard.count("step") < 290, "the recording is over before the program is"
