"""What `cuda_fixes.txt` holds, measured on a GPU: a rewrite takes its wait away, and one that is safe surely does."""

from pathlib import Path

import pytest

from syncscope import discover, rewrites

TABLE = Path(__file__).with_name("cuda_fixes.txt")
ROWS = [
    (int(before), int(after), safety, *told.split(", "))
    for before, after, safety, told in (
        line.split(" | ") for line in TABLE.read_text().splitlines() if line[:1].isdigit()
    )
]
NAMES = {name.replace("-", "_") for name in discover.names(rewrites)}
STAYS = {  # what waits as often in the example, and why it is written otherwise
    "read_where_used": "only on the way on which the number is used",
    "make_constant_once": "the first time, which is all that an example runs",
    "remember_flag": "the first time",
    "ask_identity_first": "where the two are not the same object",
}
CLOCK = "wait_before_clock"  # what was measured was the launch: the wait is what was missing


@pytest.mark.parametrize("name", sorted({row[3] for row in ROWS}))
def test_the_wait_is_gone(name):
    assert name in NAMES
    rows = [row for row in ROWS if row[3] == name and row[0]]
    if name == CLOCK:
        assert any(row[1] > row[0] for row in ROWS if row[3] == name)
    elif name in STAYS:
        assert all(after <= before for before, after, *_ in rows)
    else:
        assert all(after < before for before, after, *_ in rows)


def test_most_rewrites_are_in_the_table():
    assert len({row[3] for row in ROWS}) / len(NAMES) > 0.9
