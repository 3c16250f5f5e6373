"""What the time of a verification goes to."""

import math
import time
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from syncscope.cli._verified import summary, verdict
from syncscope.verify.budget import Budget
from syncscope.verify.results import EQUAL, Verification, as_object
from syncscope.verify.spent import IMPORTS, OTHER, READING, TURNS, Seconds
from syncscope.verify.timing import Ratio


def test_each_second_goes_to_one_thing() -> None:
    now = 0.0
    spent = Seconds(lambda: now)
    now = 1.0
    with spent.on(TURNS):
        now = 3.0
        with spent.on(IMPORTS):
            now = 7.0
            assert spent.seconds() == {OTHER: 1.0, TURNS: 2.0, IMPORTS: 4.0}
        now = 8.0
    with suppress(KeyboardInterrupt), spent.on(READING):
        now = 8.5
        raise KeyboardInterrupt
    assert spent.seconds() == {OTHER: 1.0, TURNS: 3.0, IMPORTS: 4.0, READING: 0.5}
    assert list(spent.seconds()) == [READING, IMPORTS, TURNS, OTHER]


def test_people_read_the_most_first() -> None:
    found = Verification("train.py", spent={IMPORTS: 4.2, TURNS: 31.0, OTHER: 0.1})
    assert dict(summary(found))["time"] == "31 s in turns, 4 s imports"
    assert "time" not in dict(summary(Verification("train.py")))
    assert as_object(found)["spent"] == {IMPORTS: 4.2, TURNS: 31.0, OTHER: 0.1}


@pytest.mark.parametrize(("left", "said"), [(30.0, "about 1. --budget "), (300.0, "")])
def test_turns_that_the_budget_does_not_hold_are_told_as_they_begin(left: float, said: str) -> None:
    """Three runs took a minute: nine more take three."""
    processes = SimpleNamespace(left=lambda: left, importing=0.0, count=3)
    settings = SimpleNamespace(budget=60 + left)
    runs: Any = SimpleNamespace(processes=processes, began=time.monotonic() - 60, settings=settings)
    told = Budget(runs).forewarning_of_turns()
    assert said in told
    assert bool(told) is bool(said)


def begun(budget: float, spent: float, runs: int, found: Verification | None = None) -> Budget:
    """What is known once so many runs have taken so many seconds of a budget."""
    processes = SimpleNamespace(left=lambda: budget - spent, importing=8.0, starting=10.0, count=runs)
    settings = SimpleNamespace(budget=budget)
    given: Any = SimpleNamespace(
        processes=processes, began=time.monotonic() - spent, settings=settings, found=found, in_one=False
    )
    return Budget(given)


@pytest.mark.parametrize(("budget", "spent", "runs"), [(240, 132, 8), (30, 12, 6), (60, 59, 3), (240, 200, 40)])
def test_what_a_warning_names_is_more_than_was_given(budget: float, spent: float, runs: int) -> None:
    """`--budget 4m may do` was said to who had given four minutes."""
    told = begun(budget, spent, runs)
    for said in (told.forewarning_of_turns(), told.forewarning()):
        minutes = int(said.partition("--budget ")[2].partition("m")[0])
        assert 60 * minutes > budget
        assert 60 * minutes >= spent
    assert "--budget 5m holds these; where steps vary it takes more" in begun(240, 132, 8).forewarning_of_turns()


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (
            Ratio(1.379, 0.992, 1.917, 5),
            "some 9 turns in place of 5 decide, if they vary as these did: `--budget 6m`; fewer",
        ),
        (Ratio(0.931, 0.345, 4.266, 3), "; no larger budget that anybody waits for decides"),
        (Ratio(1.083, 0.09, 7.739, 2), "four times the time, `--budget 16m`, makes the interval about half as wide"),
    ],
)
def test_in_the_end_it_is_said_what_would_decide(ratio: Ratio, said: str) -> None:
    found = Verification("train.py", steps=12, ratio=ratio, spent={TURNS: 100.0}, starting=10.0)
    assert said in begun(240, 239, 24, found).shortage()


def test_what_the_verdict_and_the_note_say_of_more_turns_is_one_thing() -> None:
    """ "More turns would bound that" stood beside "no larger budget that anybody waits for decides"."""
    few = Verification(
        "train.py", steps=12, ratio=Ratio(0.9, 0.86, 0.94, 9), same=Ratio(0.88, 0.0, math.inf, 4), values=EQUAL
    )
    assert "more turns would bound that" in verdict(few)
    assert begun(240, 239, 24, few).shortage().endswith("`--budget 16m`, bounds how far equal versions differ, likely")
    apart = replace(few, same=Ratio(0.89, 0.84, 0.95, 9))
    assert "more steps would not show it: equal versions surely differ" in verdict(apart)
    assert "no larger budget that anybody waits for decides" in begun(240, 239, 24, apart).shortage()
