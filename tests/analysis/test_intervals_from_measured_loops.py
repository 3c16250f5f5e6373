"""The interval of an answer holds what it says: by measured loops, each of them told by the others."""

import importlib.util
import json
import random
import sys
from pathlib import Path

import pytest

from syncscope.analysis.experience import (
    COVERED,
    FEW,
    TABLE,
    Likeness,
    MeasuredPair,
    ends,
    experience,
    holds,
    kind_of,
    learned,
    left_out,
    weight,
)

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
VALUES = Likeness("a GPU", "values")


@pytest.fixture(scope="module")
def calibrate():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location("calibrate", BENCHMARKS / "calibrate.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def measured():
    return json.loads((BENCHMARKS / "measured_pairs.json").read_text())


def test_four_in_five_measured_loops_lie_within_what_the_others_tell(calibrate, measured):
    told = left_out(calibrate.as_pairs(measured["pairs"]))
    covered = sum(holds(*one) for one in told) / len(told)
    assert 0.75 <= covered <= 0.90
    assert all(high <= pair.bound or high == pair.said for pair, low, high in told)


def test_what_is_left_open_makes_the_interval_wider():
    known = learned([MeasuredPair(f"loop {n}", VALUES, 0.1, 0.1 + (n - 10) / 100, 0.9) for n in range(21)])["a GPU"]
    low, high = known.around(0.1, 0.0)
    assert low < 0.1 < high
    wider = known.around(0.1, weight(0.1, 0.0))
    assert (wider[0] - 0.1, wider[1] - 0.1) == pytest.approx((2 * (low - 0.1), 2 * (high - 0.1)))


def test_the_table_is_made_of_what_was_measured(calibrate, measured):
    assert TABLE.read_text() == calibrate.table(measured)
    assert {one["run"] for one in measured["pairs"]} == set(measured["runs"])


def test_no_loop_that_is_held_out_was_learned_from(calibrate, measured):
    learned_from, held_out = (set(calibrate.names(folder)) for folder in (calibrate.LEARNED_FROM, calibrate.HELD_OUT))
    taught = {one["loop"] for one in measured["pairs"]}
    assert held_out
    assert not taught & held_out
    assert taught <= learned_from


def test_a_table_of_its_own_distribution_covers_the_next():
    chance = random.Random(7)

    def pairs(loops, first=0):
        return [
            MeasuredPair(f"l{n}", VALUES, 0.1, 0.1 + chance.gauss(0, 0.05), 1.0) for n in range(first, first + loops)
        ]

    inside = []
    for _ in range(40):
        known = learned(pairs(60))["a GPU"]
        low, high = known.around(0.1, 0.0)
        inside += [low <= pair.true <= high for pair in pairs(50)]
    assert sum(inside) / len(inside) == pytest.approx(COVERED, abs=0.05)


def test_the_recordings_of_one_loop_count_as_one():
    many = [("a", 9.0)] * 50 + [(f"l{n}", n / 10) for n in range(30)]
    assert ends(many) == ends([("a", 9.0), *many[50:]])


def test_few_loops_are_pooled_and_no_machine_is_told_by_another():
    some = [
        MeasuredPair(f"l{n}", Likeness("a GPU", "values" if n % 2 else "rows"), 0.1, 0.1, 1.0)
        for n in range(2 * FEW - 2)
    ]
    assert set(learned(some)) == {"a GPU"}
    assert experience(Likeness("an abacus", "values")) is None


def test_what_is_said_of_little_is_off_by_little():
    known = learned([MeasuredPair(f"l{n}", VALUES, 0.2, 0.2 + n / 500, 1.0) for n in range(-20, 21)])["a GPU"]
    wide, narrow = (known.around(said, 0.0) for said in (0.4, 0.0))
    assert wide[1] - wide[0] > 3 * (narrow[1] - narrow[0])


def test_the_kind_of_a_recording():
    assert kind_of(["item", "float"], False, 0.9) == Likeness("a GPU", "values")
    assert kind_of(["item", "mask_read"], True, 0.0) == Likeness("a processor", "rows")
    assert kind_of(["to_device", "item"], True, 0.5) == Likeness("a busy processor", "copies")
