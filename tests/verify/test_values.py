"""What two runs have read, side by side: whether it is the same."""

import numpy as np
import pytest

from syncscope.model.source import Place
from syncscope.verify.capture import digest
from syncscope.verify.values import LAST_BIT, NotedValue, Values, difference, pieces

LINE = Place("train.py", 3)


def run(*values: object) -> Values:
    """A run that has read these, one after the other in its second step."""
    read = [NotedValue(1, *digest(np.asarray(value))) for value in values]
    return Values(3, [], {LINE: read}, {}, [], [])


@pytest.mark.parametrize(
    ("size", "last", "by"), [(64, 2.0, 0.5), (65, 2.0, 0.5), (74, 11.0, 0.5), (1000, -1.0, LAST_BIT)]
)
def test_a_value_that_differs_in_its_last_number_only_is_not_the_same(size: int, last: float, by: float) -> None:
    one, other = np.ones(size), np.ones(size)
    other[-1] = last
    assert difference(run(one), run(other), *pieces({}, {})).reads == by
    assert difference(run(one), run(one), *pieces({}, {})).reads == 0.0


def test_numbers_read_at_once_are_those_read_one_by_one() -> None:
    assert difference(run(1.5, 2), run([1.5, 2.0]), *pieces({}, {})).reads == 0.0
