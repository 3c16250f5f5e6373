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


@pytest.mark.parametrize(("last", "compared"), [(3.0, 3), (4.0, 0)])
def test_numbers_of_several_lines_are_found_where_all_are_read_at_once(last: float, compared: int) -> None:
    before, after = (
        b"a = x.item()\nb = y.item()\nz.backward()\nc = z.item()\n",
        b"z.backward()\na, b, c = all.tolist()\n",
    )
    values = {line: [NotedValue(1, *digest(np.asarray(float(line))))] for line in (1, 2)}
    values[4] = [NotedValue(1, *digest(np.asarray(3.0)))]
    one = Values(3, [], {Place("train.py", line): read for line, read in values.items()}, {}, [], [])
    at_once = [NotedValue(1, *digest(np.asarray([1.0, 2.0, last])))]
    other = Values(3, [], {Place("train.py", 2): at_once}, {}, [], [])
    found = difference(one, other, *pieces({"train.py": before}, {"train.py": after}))
    assert (found.reads, found.compared, found.read) == (0.0, compared, 3)
