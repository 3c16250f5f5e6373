"""How often what differs is begun, from how often it has been by the end of each step."""

from syncscope.verify.periods import Periods


def heard(*counts: int) -> Periods:
    """Of passage 7, by the ends of steps."""
    periods = Periods()
    for count in counts:
        periods.step({(7, 0): count, (7, 1): 99})
    return periods


def test_what_each_step_begins_has_a_period_of_one() -> None:
    assert heard(1, 2, 3, 4).of(7) == 1
    assert heard(3, 6, 9).of(7) == 1


def test_what_begins_once_in_some_steps_has_the_longest_of_them() -> None:
    assert heard(1, 1, 1, 1, 2, 2, 2, 3).of(7) == 4


def test_what_was_begun_early_only_or_once_has_none() -> None:
    assert heard(1, 1, 1).of(7) is None
    assert heard(1, 2, 2, 2).of(7) is None
    assert heard(0, 0, 1, 1).of(8) is None
    assert not heard(1, 1, 2).known([7, 8])
    assert heard(1, 1, 2).known([7])
