"""What waits in a step is counted over whole rounds of a loop whose steps do not wait alike."""

import pytest
from drawn import Device

from syncscope.analysis.rounds import whole_rounds
from syncscope.analysis.summary import summarize
from syncscope.exporters import _figures as figures

MS = 1_000_000


def waits(*rollouts: int, loss: int = 1) -> list[dict[str, int]]:
    """Steps with so many waits before each, beside those that each step has."""
    return [{"loss": loss, "rollout": count} if count else {"loss": loss} for count in rollouts]


@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("steps", [5, 8, 9, 12, 15])
def test_whichever_steps_are_known_a_rollout_in_four_is_one_in_four(steps: int, first: int) -> None:
    known = waits(*(32 if (step + first) % 4 == 0 else 0 for step in range(steps)))
    rounds = whole_rounds(known, range(1, steps))
    if (steps, first) in ((5, 1), (5, 2), (5, 3)):  # one rollout alone has no next
        assert rounds.number == 0
        assert "no whole round" in rounds.words
        return
    assert sum(known[step].get("rollout", 0) for step in rounds.counted) / len(rounds.counted) == 8
    assert rounds.period == 4
    assert rounds.words.startswith("steps do not wait alike: counted ")


def test_steps_that_wait_alike_are_all_counted() -> None:
    known = waits(7, 0, 0, 0, 0, 0)  # what comes before the first step is none of it
    rounds = whole_rounds(known, range(1, 6))
    assert (rounds.counted, rounds.words) == (range(1, 6), "")


def test_rounds_that_are_not_all_as_long_are_whole_too() -> None:
    """An epoch that ends early once: from behind a rollout up to another."""
    known = waits(32, 0, 0, 0, 32, 0, 0, 32, 0, 0, 0, 32, 0)
    rounds = whole_rounds(known, range(1, 13))
    assert (rounds.counted, rounds.number, rounds.period) == (range(1, 12), 3, None)
    assert rounds.words.endswith("counted are 11, from behind one that waits often up to the last such")


def test_what_a_rollout_reads_besides_may_differ_from_one_to_the_next() -> None:
    known = waits(32, 0, 0, 0, 29, 0, 0, 0, 36, 0, 0, 0)
    known[2]["nan"] = 1
    assert whole_rounds(known, range(1, 12)).counted == range(4, 12)


def test_what_happens_once_makes_no_round_of_it() -> None:
    rounds = whole_rounds(waits(0, 0, 0, 50, 0, 0), range(1, 6))
    assert (rounds.counted, rounds.number) == (range(1, 6), 0)
    assert "no whole round of them is in the 5 that are counted" in rounds.words


@pytest.mark.parametrize("first", range(4))
def test_a_report_counts_whole_rounds_however_long_a_rollout_takes(first: int) -> None:
    """It had taken rollouts for steps that warm up, and told of the steps behind them alone."""
    step = [("launch", 0, 5 * MS), ("read", 57, 0), ("work", 2 * MS)]
    rollout = [*[("launch", 0, 2 * MS), ("read", 30, 0)] * 8]
    program = [[*rollout * ((number + first) % 4 == 0), *step] for number in range(14)]
    report = summarize(Device().run(program)[0])
    assert {line.place.line: line.count for line in report.lines if line.place} == {57: 1, 30: 2}
    assert report.steady == 12
    assert figures.counted(report) == "12 counted: whole rounds of steps that do not wait alike"
    assert "steps do not wait alike: counted are 3 whole rounds of 4 steps" in report.notes


def test_a_report_of_less_than_a_round_says_so() -> None:
    step = [("launch", 0, 5 * MS), ("read", 57, 0), ("work", 2 * MS)]
    program = [[*[("launch", 0, 2 * MS), ("read", 30, 0)] * (8 if number == 5 else 0), *step] for number in range(10)]
    assert any("no whole round of them is in the 8" in note for note in summarize(Device().run(program)[0]).notes)
