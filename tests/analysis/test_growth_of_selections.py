"""What of a selection's work grows with its rows, as far as its steps tell."""

from collections.abc import Callable

import numpy as np
import pytest

from syncscope.analysis.growth import ALIKE, growth
from syncscope.model.detail import Detail
from syncscope.model.trace import Event, Kind, Lane, Trace

US = 1_000
KEPT = (120, 150, 130, 170, 140, 160)


def told(blocks: Callable[[int], int], us: Callable[[int], float], kept: tuple[int, ...]) -> list[tuple[float, float]]:
    """What grows of a kernel that is launched with so many blocks, and takes so long, where so many rows are kept; and how
    many us it usually takes in each of these steps."""
    events = [
        Event(
            Kind.KERNEL,
            "k",
            Lane(0, 7, 0),
            n * 10**6,
            int(us(rows) * US),
            detail=Detail(grid=(blocks(rows), 1, 1)).text(),
        )
        for n, rows in enumerate(kept)
    ]
    found = growth(Trace.of(events), [np.array([n]) for n in range(len(kept))], kept)
    return [(float(part[0]), float(usual[0]) / US) for part, usual in found]


def part(blocks: Callable[[int], int], us: Callable[[int], float], kept: tuple[int, ...] = KEPT) -> float:
    """The part that grows, in each of the steps."""
    (first, *others) = [grows for grows, _ in told(blocks, us, kept)]
    assert all(other == first for other in others)
    return first


def test_more_blocks_for_more_rows_grow() -> None:
    assert part(lambda rows: rows, lambda rows: 3 * rows) == 1.0


def test_weights_are_prepared_whatever_is_kept() -> None:
    assert part(lambda rows: 100, lambda rows: 40 + rows % 3 / 10) == pytest.approx(0.0, abs=0.05)


def test_a_sum_over_rows_grows_though_its_launch_is_alike() -> None:
    assert part(lambda rows: 100, lambda rows: 0.5 * rows + rows % 3 / 10) == pytest.approx(1.0, abs=0.05)


def test_where_noise_hides_it_some_of_it_grows() -> None:
    noise = dict(zip(KEPT, (80, 20, 70, 30, 75, 25), strict=True))
    assert part(lambda rows: 100, lambda rows: noise[rows]) == pytest.approx(ALIKE[0], abs=0.35)


@pytest.mark.parametrize("kept", [(150,) * 6, (150, 151, 150, 152, 151, 150), (120, 170)])
def test_steps_that_keep_as_many_tell_nothing(kept: tuple[int, ...]) -> None:
    assert part(lambda rows: 100, lambda rows: 50, kept) == 1.0


def test_what_held_it_up_once_does_not_grow() -> None:
    usual = [us for _, us in told(lambda rows: rows, lambda rows: 3 * rows + 900 * (rows == 170), KEPT)]
    assert usual == pytest.approx([3 * rows for rows in KEPT], rel=0.01)
