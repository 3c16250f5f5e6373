"""From the lengths of steps to a ratio; from lines of one version to those of another."""

import math

import pytest

from syncscope.verify import late, timing
from syncscope.verify.lines import LineMap
from syncscope.verify.timing import Ratio, ratio_of, settled, step
from syncscope.verify.values import relative

BEFORE = b"a = x.item()\nb = y.item()\nprint(a)\nprint(b)\n"
AFTER = b"import torch\na, b = torch.stack((x, y)).tolist()\nprint(a)\nprint(b)\n"


@pytest.mark.parametrize(
    ("lengths", "kept"),
    [
        ([10, 10, 10, 10], [10, 10, 10, 10]),
        ([90, 40, 11, 10, 10, 10, 10], [11, 10, 10, 10, 10]),
        ([None, 12, None, 10, 10, 10, 10], [10, 10, 10, 10]),  # kernels were built
        ([90, 10, 10, 10, 30, 10, 10], [10, 10, 10, 30, 10, 10]),  # a long one later is no warm-up
        ([None, None], []),
    ],
)
def test_steps_count_from_where_they_are_alike(lengths: list[float | None], kept: list[float]) -> None:
    assert settled(lengths) == kept


def test_a_run_is_the_mean_of_its_steps_without_the_longest() -> None:
    assert step([10.0] * 19 + [12.0]) == 10
    assert step([10.0] * 10 + [20.0] * 10) == pytest.approx(14.737, abs=1e-3)  # every other step reads
    assert step([]) is None


def test_the_interval_is_that_of_the_turns() -> None:
    assert ratio_of([]) is None
    found = ratio_of([(100, 80), (100, 82), (100, 78), (100, 80)])
    assert found is not None
    assert found.ratio == pytest.approx(0.8)
    assert 0.77 < found.low < 0.79 < 0.81 < found.high < 0.83
    assert found.gains
    assert not found.loses
    even = ratio_of([(100, 96), (100, 104), (100, 100)])
    assert even is not None
    assert even.low < 1 < even.high
    assert not even.gains


@pytest.mark.parametrize(
    ("found", "enough"),
    [
        (Ratio(1.0, 0.995, 1.005, 3), True),
        (Ratio(1.0, 0.995, 1.005, 2), False),  # too few turns
        (Ratio(1.0, 0.95, 1.05, 9), False),
        (Ratio(0.5, 0.45, 0.55, 3), True),  # beside such a gain
        (Ratio(0.05, 0.01, 0.09, 3), True),
    ],
)
def test_turns_end_when_the_interval_is_narrow(found: Ratio, enough: bool) -> None:
    assert timing.narrow(found, 0.01) is enough


def test_lines_of_two_versions_meet() -> None:
    lines = LineMap(BEFORE, AFTER)
    assert lines.piece_before(1) == lines.piece_before(2) == lines.piece_after(2)
    assert lines.piece_before(3) == lines.piece_after(3) != lines.piece_before(4)
    assert lines.line_before(4) == 4
    assert lines.piece_before(9) == -1


def test_blocks_of_steps_are_compared_in_pairs() -> None:
    of = {False: 10.0, True: 7.0}
    order = [False] * 10 + [True] * 10 + [False] * 20 + [True] * 10  # warming up; a pair; another the other way round
    lengths: list[float | None] = [of[how] for how in order[1:]]
    assert late.blocks_of(lengths, order) == [(10.0, 7.0), (10.0, 7.0)]
    assert late.blocks_of(lengths[:35], order) == [(10.0, 7.0)]
    assert late.blocks_of(lengths[:25], order) == []


def test_a_difference_is_relative_to_the_largest_element() -> None:
    np = pytest.importorskip("numpy")
    assert relative(np.array([4.0, 0.001]), np.array([4.0, 0.002])) == pytest.approx(0.00025)
    assert relative(np.array([math.nan, 1.0]), np.array([math.nan, 1.0])) == 0
    assert relative(np.array([0.0]), np.array([-0.0])) == 0
    assert relative(np.array([1.0]), np.array([math.inf])) == math.inf


@pytest.mark.parametrize(("turns", "said"), [(2, "0.708 (of 2 turns)"), (3, "0.708 (0.006 to 85.894)")])
def test_an_interval_is_said_from_as_many_turns_as_it_is_believed_from(turns: int, said: str) -> None:
    assert str(Ratio(0.708, 0.006, 85.894, turns)) == said
