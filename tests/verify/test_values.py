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


@pytest.mark.parametrize(("wrong", "compared"), [(0.0, 58), (0.5, 0)])
def test_numbers_of_several_lines_are_found_where_all_are_read_at_once(wrong: float, compared: int) -> None:
    """One of them a step later."""
    before, after = b"a = x.item()\nz.step()\nb = y.item()\n", b"z.step()\na, b = both.tolist()\n"

    def read(step: int, *values: float) -> NotedValue:
        return NotedValue(step, *digest(np.asarray(values if len(values) > 1 else values[0])))

    steps = range(30)
    first, second = Place("train.py", 1), Place("train.py", 3)
    one = Values(
        30, [], {first: [read(n, n + 0.25) for n in steps], second: [read(n, -n) for n in steps[1:]]}, {}, [], []
    )
    at_once = [read(n, n - 0.75 + wrong * n, -n) for n in steps[1:]]
    other = Values(30, [], {Place("train.py", 2): at_once}, {}, [], [])
    found = difference(one, other, *pieces({"train.py": before}, {"train.py": after}))
    assert (found.reads, found.compared, found.read) == (0.0, compared, 59)
