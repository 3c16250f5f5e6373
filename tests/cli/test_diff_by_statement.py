"""A statement that waits in another operation than before is a new sync only in so far as it waits more often."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cli.compared import compared, gated

from syncscope.model.trace import Kind

sys.path.insert(0, str(Path(__file__).parents[1] / "analysis"))
from drawn import Device


def recorded(waits, texts, functions=None):
    """Six steps in which these lines wait: of each the op and how often, and the function around it where that is known."""
    step = [("launch", 0, 5_000_000)]
    ops = {}
    for line, op, count in waits:
        step += [("read", line, 0)] * count
        ops[line] = op
    trace = Device().run([step] * 6)[0]
    names = (*trace.names, *dict.fromkeys(ops.values()))
    reads = trace.rows(Kind.READ)
    name = np.array(trace.name)
    for row in reads.tolist():
        name[row] = names.index(ops[trace.places[trace.place[row]].line], len(trace.names))
    lines = {str(line): text for line, text in texts.items()}
    around = tuple((functions or {}).get(place.line, "") for place in trace.places)
    return replace(trace, names=names, name=name, functions=around, meta=trace.meta | {"lines": {"train.py": lines}})


def loop(*waits, at=0, texts=None):
    """The waits between two lines that stay, the second of which stands `at` lines further down."""
    known = {20: "above", 60 + at: "below"} | (texts or {line: f"{line} {op}" for line, op, _ in waits})
    return recorded([(20, "item", 1), *waits, (60 + at, "item", 1)], known)


BEFORE = loop((40, "mask_read", 2))


@pytest.mark.parametrize(
    "after",
    [
        loop((40, "nonzero", 1)),
        loop((40, "nonzero", 2)),
        loop((42, "nonzero", 2), at=3),
        loop((40, "nonzero", 1), texts={40: "40 mask_read"}),
    ],
    ids=["less often", "as often", "below lines that came", "of the same text"],
)
def test_a_statement_that_waits_in_another_operation_and_no_more_often_is_not_new(tmp_path, after):
    assert gated(tmp_path, BEFORE, after, "--max-new-syncs", "0") == (0, "")
    assert "is in place of the mask_read that was at train.py:40" in compared(tmp_path, BEFORE, after)[1]
    assert "in place of the mask_read" in compared(tmp_path, BEFORE, after, "--format", "github")[1]


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (loop((40, "nonzero", 3)), "train.py:40: nonzero: +1 per step"),
        (loop((50, "nonzero", 1)), "train.py:50: nonzero: +1 per step"),
        (loop((70, "nonzero", 1)), "train.py:70: nonzero: +1 per step"),
        (loop((40, "mask_read", 2), (41, "nonzero", 1)), "train.py:41: nonzero: +1 per step"),
        (loop((46, "nonzero", 2), at=3), "train.py:46: nonzero: +2 per step"),
    ],
    ids=["more often", "at another statement", "below a line that stays", "beside what stays", "further down"],
)
def test_one_more_wait_of_a_statement_or_one_at_another_is_new(tmp_path, after, said):
    code, err = gated(tmp_path, BEFORE, after, "--max-new-syncs", "0")
    assert code == 1
    assert said in err


def test_what_a_statement_waits_more_is_new_though_another_changed_its_operation(tmp_path):
    texts = {40: "40 nonzero"}
    one = recorded([(20, "item", 1), (40, "nonzero", 1)], {20: "above"} | texts)
    other = recorded([(20, "bool", 1), (40, "nonzero", 2)], {20: "above"} | texts)
    code, err = gated(tmp_path, one, other, "--max-new-syncs", "0")
    assert code == 1
    assert "1 sync per step is new" in err
    assert "train.py:40: nonzero: +1 per step" in err


def alone(*waits, **functions):
    """Steps in which only these lines wait, each in its own expression."""
    around = {int(line[1:]): name for line, name in functions.items()}
    texts = {line: f"{around[line]}{line} {op}{around[line]}{line}" for line, op, _ in waits}
    return recorded(waits, texts, around)


def test_a_wait_of_another_function_and_another_expression_is_new_whatever_is_gone(tmp_path):
    before = alone((5, "item", 8), _5="pick")
    after = alone((13, "item", 1), _13="main")
    code, err = gated(tmp_path, before, after, "--max-new-syncs", "0")
    assert code == 1
    assert "train.py:13: item: +1 per step" in err
    said = compared(tmp_path, before, after)[1]
    assert "it is not counted as new" not in said
    assert "gone train.py:5 item" in said
    assert "new train.py:13 item" in said
    there = alone((5, "item", 1), _5="main")
    assert gated(tmp_path, before, there, "--max-new-syncs", "0")[0] == 1, "nor if it is at a line of that number"


@pytest.mark.parametrize("op", ["item", "nonzero"])
def test_one_line_is_where_two_others_are_in_none_of_them(tmp_path, op):
    before = loop((41, op, 8), at=4)
    after = loop((42, "item", 1), (44, "item", 1), at=8, texts={42: "a b", 44: "c d"})
    code, err = gated(tmp_path, before, after, "--max-new-syncs", "0")
    assert code == 1
    assert err.startswith("2 syncs per step are new")
    said = compared(tmp_path, before, after)[1]
    assert "it is not counted as new" not in said
    assert f"gone train.py:41 {op}" in said
    assert all(f"new train.py:{line} item" in said for line in (42, 44))


def test_a_line_that_only_moved_within_its_function_is_not_new(tmp_path):
    before = recorded([(5, "item", 1)], {5: "aa cc"}, {5: "main"})
    after = recorded([(19, "item", 1)], {19: "bb cc"}, {19: "main"})
    assert gated(tmp_path, before, after, "--max-new-syncs", "0") == (0, "")
