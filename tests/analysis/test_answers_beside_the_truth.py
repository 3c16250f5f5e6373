"""What is called right, and truly saved, where answers are held to loops by another hand."""

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def held_out():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return import_module("held_out")
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.mark.parametrize(
    ("low", "high", "decision", "right"),
    [
        (0.06, 0.20, "fix", True),
        (0.06, 0.20, "try", True),
        (0.06, 0.20, "leave", False),
        (0.06, 0.20, "unknown", False),
        (-0.30, 0.02, "leave", True),
        (-0.30, 0.02, "try", False),
        (0.01, 0.09, "fix", None),  # nobody can say
    ],
)
def test_a_decision_is_right_or_wrong_only_where_the_truth_is_sure(held_out, low, high, decision, right):
    true = {"share": (low + high) / 2, "low": low, "high": high}
    assert held_out.right(true, {"decision": decision}) is right


def test_what_is_saved_is_the_median_of_neighbours_and_holds_what_each_process_says(held_out):
    steady = {"written": [10.0, 10.0, 10.0, 50.0], "fixed": [8.0, 8.0, 8.0, 40.0]}  # a slow machine is so for both
    other = {"written": [10.0, 10.0, 10.0, 10.0], "fixed": [9.0, 9.0, 9.0, 9.0]}
    found = held_out.saved([steady, steady, other])
    assert found["share"] == pytest.approx(0.2)
    assert (found["low"], found["high"]) == pytest.approx((0.1, 0.2))


def test_nothing_is_learned_from_loops_that_are_held_out(held_out):
    hands = {folder.name: set(held_out.loops_of(folder)) for folder in held_out.HELD_OUT.glob("[!_]*/")}
    names = set().union(*hands.values())
    assert len(hands[held_out.LOOPS.name]) >= 10
    assert len(names) == sum(map(len, hands.values()))  # a run is told by the names of its loops
    taught = {one["loop"] for one in json.loads((BENCHMARKS / "measured_pairs.json").read_text())["pairs"]}
    assert not names & taught
    learned_from = set(held_out.loops_of(BENCHMARKS / "loops" / "learned_from"))
    for run in json.loads((BENCHMARKS / "held_out.json").read_text()):
        assert set(run["loops"]) <= hands.get(run["of"], learned_from)
