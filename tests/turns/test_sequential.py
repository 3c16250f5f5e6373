"""Intervals that are looked at after every value: how often any of them leaves the truth out, and how soon they tell."""

import math
import random
from collections.abc import Callable
from statistics import fmean

import pytest
from effort import counts
from hypothesis import given
from hypothesis import strategies as st

from syncscope.analysis.errors import half_interval
from syncscope.turns.sequential import interval, tamed

Draw = Callable[[random.Random], float]
MANY, LONG = counts(200), 80
KINDS: dict[str, Draw] = {
    "normal": lambda draw: draw.gauss(0, 0.03),
    "flat": lambda draw: draw.uniform(-0.05, 0.05),
    "peaked": lambda draw: draw.choice((-1, 1)) * draw.expovariate(40),
    "with pauses of the machine": lambda draw: draw.gauss(0, 0.02) + (draw.random() < 0.05) * draw.gauss(0, 0.5),
}


def ever_wrong(draw: random.Random, kind: Draw) -> bool:
    values: list[float] = []
    for _ in range(LONG):
        values.append(kind(draw))
        if len(values) < 4:  # nothing is known
            continue
        _, low, high = interval(tamed(values))
        if not low <= 0 <= high:
            return True
    _, low, high = interval(tamed(values), is_last=True)
    return not low <= 0 <= high


@pytest.mark.parametrize("kind", KINDS)
def test_to_look_after_every_value_leaves_the_truth_out_in_one_case_of_twenty_at_most(kind: str) -> None:
    draw = random.Random(kind)
    wrong = sum(ever_wrong(draw, KINDS[kind]) for _ in range(MANY))
    assert wrong / MANY <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / MANY)


def test_an_interval_of_a_fixed_plan_that_is_looked_at_so_is_wrong_far_more_often() -> None:
    """What the other test would find if it could not fail."""
    import numpy as np

    draw, wrong = random.Random(1), 0
    for _ in range(100):
        values = [draw.gauss(0, 0.03) for _ in range(LONG)]
        wrong += any(abs(fmean(values[:n])) > half_interval(np.array(values[:n])) for n in range(3, LONG))
    assert wrong > 20


@pytest.mark.parametrize(("effect", "turns"), [(-0.10, 15), (-0.03, 60)])
def test_a_gain_is_known_soon(effect: float, turns: int) -> None:
    draw, late = random.Random(3), 0
    for _ in range(100):
        values = [effect + draw.gauss(0, 0.03) for _ in range(turns)]
        late += not any(interval(values[:n])[2] < 0 for n in range(3, turns + 1))
    assert late <= 10


@given(st.lists(st.integers(-100, 100), min_size=1, max_size=40), st.integers(-3, 3))
def test_an_interval_moves_with_its_values_and_holds_their_mean(values: list[float], by: float) -> None:
    middle, low, high = interval(values)
    assert low <= middle <= high
    moved, lower, higher = interval([value + by for value in values])
    assert moved == pytest.approx(middle + by, rel=1e-9, abs=1e-9)
    if math.isfinite(high):
        assert (lower, higher) == pytest.approx((low + by, high + by), abs=1e-6)


def test_one_value_that_is_far_off_moves_little() -> None:
    draw = random.Random(0)
    values = [draw.gauss(0, 0.01) for _ in range(20)]
    assert abs(fmean(tamed([*values, 3.0])) - fmean(tamed(values))) < 0.01
    assert tamed(values[:5]) == values[:5]


def test_the_last_look_tells_more_than_those_before() -> None:
    draw = random.Random(1)
    values = [draw.gauss(0, 0.03) for _ in range(30)]
    (middle, low, high), (_, lower, higher) = interval(values, is_last=True), interval(values)
    assert middle - lower > 1.5 * (middle - low)
    assert higher - middle > 1.5 * (high - middle)
    assert interval(values[:4], is_last=True) == interval(values[:4])  # too few for a word


def test_without_a_value_there_is_none() -> None:
    with pytest.raises(ValueError, match="no value"):
        interval([])
