"""Two recordings of one program hold other steps of it, and its functions move: neither is a new sync."""

import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from cli.compared import STEP, gated
from effort import draws

from syncscope.analysis.compare import compare
from syncscope.analysis.summary import summarize
from syncscope.cli._diff_tables import lines, remarks
from syncscope.cli._gate import limits
from syncscope.model.source import Place
from syncscope.model.trace import Trace

sys.path.insert(0, str(Path(__file__).parents[1] / "analysis"))
from drawn import Device

LOG = 60
PAIRS = draws(4)  # of recordings that are drawn


def recorded(counts):
    """A step for each of these counts: the loop's own wait, and so many at the line that logs."""
    trace = Device().run([[*STEP, *[("read", LOG, 0)] * count] for count in counts])[0]
    return replace(trace, meta=trace.meta | {"lines": {"train.py": {"57": "aa", str(LOG): "bb"}}})


def epochs(steps, first, every=11, waits=5):
    return recorded([waits if n >= first and (n - first) % every == 0 else 0 for n in range(steps)])


def gate(tmp_path, before, after):
    return gated(tmp_path, before, after, "--max-new-syncs", "0")


@pytest.mark.parametrize(
    ("one", "other"),
    [((26, 4), (25, 3)), ((21, 5), (17, 6)), ((26, 4), (20, 9)), ((30, 0), (30, 7))],
    ids=["one each", "one and two", "other ends", "in a step that is not counted"],
)
def test_what_waits_once_an_epoch_is_not_new_in_another_window(tmp_path, one, other):
    before, after = epochs(*one), epochs(*other)
    assert gate(tmp_path, before, after) == (0, "")
    assert gate(tmp_path, after, before) == (0, "")


def of_files(trace, main="same"):
    return replace(trace, meta=trace.meta | {"files": {"train.py": main}})


@pytest.mark.parametrize(
    ("steps", "text", "code"),
    [(20, "same", 0), (20, "edited", 1), (60, "same", 1), (9, "same", 0)],
    ids=["shorter than an epoch", "of another text", "longer than an epoch", "far shorter"],
)
def test_a_recording_without_an_evaluation_does_not_make_that_of_another_new(tmp_path, steps, text, code):
    before, after = of_files(recorded([0] * steps)), of_files(epochs(76, 14, every=29), text)
    ended, said = gate(tmp_path, before, after)
    assert ended == code
    assert ("are new" in said) == (code == 1)
    assert gate(tmp_path, after, before) == (0, "")


def test_a_line_of_an_unchanged_file_that_waits_in_every_step_now_is_new(tmp_path):
    before, after = of_files(recorded([0] * 20)), of_files(recorded([1] * 76))
    assert gate(tmp_path, before, after)[0] == 1
    assert gate(tmp_path, of_files(recorded([0] * 20)), of_files(recorded([0] * 10 + [1] * 10)))[0] == 1


def test_the_table_says_why_a_line_between_two_evaluations_is_not_new():
    found = compare(of_files(recorded([0] * 20)), of_files(epochs(76, 14, every=29)))
    assert [row.word for row in lines(found) if row.word != "same"] == ["at times"]
    (said,) = [each for each in remarks(found) if "at times" in each or "some steps only" in each]
    assert "the first recording has fewer steps than lie between two such" in said


def test_the_table_calls_that_new_which_the_limit_does():
    """In the first recording it waits in a step that is not counted, for it is the first."""
    found = compare(epochs(30, 0, every=30), epochs(30, 7, every=30))
    assert [(row.word, row.place.rpartition(":")[2]) for row in lines(found) if row.word != "same"] == [
        ("at times", "60")
    ]
    (said,) = remarks(found)
    assert "train.py:60 waits in some steps only: in the first recording, too" in said
    assert found.more.count == 0
    more = compare(recorded([0] * 30), epochs(30, 7))
    assert [row.word for row in lines(more)].count("new") == 1
    assert more.more.count > 0


def test_a_limit_on_syncs_says_in_how_many_steps_a_line_waits():
    (limit,) = limits(summarize(epochs(30, 7)), 1, None)
    told = [said for said in limit.broken if f":{LOG}:" in said]
    assert told == [f"  train.py:{LOG}: item: 0.455 per step, in 2 of 22 steps"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (epochs(26, 4), epochs(25, 3, waits=6)),
        (epochs(60, 4, 10), epochs(60, 4, 5)),
        (epochs(60, 4, 10), epochs(60, 4, 7)),
        (recorded([1] * 8), recorded([2] * 8)),
        (recorded([1] * 5), recorded([2] * 5)),
        (recorded([1] * 26), recorded([2 if n == 9 else 1 for n in range(26)])),
        (recorded([0, 1] * 13), recorded([1] * 26)),
    ],
    ids=["more of them", "twice as often", "more often", "in every step", "of few steps", "in one step", "every other"],
)
def test_what_waits_more_within_a_step_or_in_more_steps_is_new(tmp_path, before, after):
    code, said = gate(tmp_path, before, after)
    assert code == 1
    assert f"train.py:{LOG}: item: +" in said
    assert gate(tmp_path, after, before) == (0, "")


def by_chance(seed, share, steps=40):
    draw = random.Random(seed)
    return recorded([int(draw.random() < share) for _ in range(steps)])


def test_what_waits_by_chance_is_new_only_where_it_does_so_more_often_than_chance_has_it(tmp_path):
    failed = [gate(tmp_path, by_chance(n, 0.3), by_chance(100 + n, 0.3))[0] for n in range(PAIRS)]
    assert sum(failed) <= PAIRS // 5
    assert all(gate(tmp_path, by_chance(n, 0.2), by_chance(100 + n, 0.9))[0] == 1 for n in range(PAIRS // 2))


def test_counts_that_vary_are_new_only_where_they_are_larger(tmp_path):
    def drawn(seed, more=0):
        draw = random.Random(seed)
        return recorded([draw.randint(3, 7) + more for _ in range(24)])

    failed = [gate(tmp_path, drawn(n), drawn(100 + n))[0] for n in range(PAIRS)]
    assert sum(failed) <= PAIRS // 5
    assert all(gate(tmp_path, drawn(n), drawn(100 + n, 4))[0] == 1 for n in range(PAIRS // 2))


def placed(trace, at):
    """The recording with each of its lines in the file, the function and the line that `at` has for it; 57 and 60 are waits."""
    moved = {line: Place(path, to) for line, (path, _, to) in at.items()}
    names = {moved[line]: function for line, (_, function, _) in at.items()}
    places = tuple(moved.get(place.line, place) for place in trace.places)
    lines: dict[str, dict[str, str]] = {}
    for line, text in ((57, "aa"), (LOG, "bb")):
        lines.setdefault(moved[line].path, {})[str(moved[line].line)] = text
    functions = tuple(names.get(place, "") for place in places)
    return replace(trace, places=places, functions=functions, meta=trace.meta | {"lines": lines})


HERE = {57: ("lib/loss.py", "norm", 10), LOG: ("lib/loss.py", "masked", 6)}
LOOP = Device().run([[*STEP, ("read", LOG, 0)]] * 6)[0]


@pytest.mark.parametrize(
    "there",
    [
        {57: ("lib/extra.py", "norm", 5), LOG: HERE[LOG]},
        {57: ("lib/losses.py", "norm", 13), LOG: ("lib/losses.py", "masked", 9)},
        {57: ("lib/a.py", "norm", 13), LOG: ("lib/b.py", "masked", 9)},
    ],
    ids=["to a new file", "with its file, which was renamed", "each to a file of its own"],
)
def test_a_function_that_moved_to_another_file_is_not_new(tmp_path, there):
    before, after = placed(LOOP, HERE), placed(LOOP, there)
    assert gate(tmp_path, before, after) == (0, "")
    assert gate(tmp_path, after, before) == (0, "")
    more = placed(Device().run([[*STEP, ("read", LOG, 0), ("read", LOG, 0)]] * 6)[0], there)
    code, said = gate(tmp_path, before, more)
    assert code == 1
    assert f"{there[LOG][0]}:{there[LOG][2]}: item: +1 per step" in said


def test_the_same_text_in_another_function_of_another_file_is_new(tmp_path):
    before = placed(LOOP, HERE)
    other = placed(LOOP, {57: ("lib/extra.py", "mean", 5), LOG: HERE[LOG]})
    code, said = gate(tmp_path, before, other)
    assert code != 0
    assert "lib/extra.py:5" in said
    both: Trace = Device().run([[*STEP, ("read", LOG, 0), ("read", 70, 0)]] * 6)[0]
    copied = placed(both, HERE | {70: ("lib/extra.py", "norm", 5)})
    assert gate(tmp_path, before, copied)[0] == 1, "a copy waits beside what it was made of"
