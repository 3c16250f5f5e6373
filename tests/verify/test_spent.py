"""What the time of a verification goes to."""

from contextlib import suppress

from syncscope.cli._verified import summary
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
