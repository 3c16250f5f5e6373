"""What the time of a verification goes to."""

import time
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from syncscope.cli._verified import summary
from syncscope.verify.budget import Budget
from syncscope.verify.results import Verification, as_object
from syncscope.verify.spent import IMPORTS, OTHER, READING, TURNS, Seconds


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
