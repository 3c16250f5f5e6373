"""The row of all waits among what would help: what is to be written, with which command, and where not to read instead."""

import re

import pytest
from calls import grows_at_most
from test_what_if import MS, length, recorded, rows

from syncscope.analysis import in_c
from syncscope.analysis.summary import summarize
from syncscope.model.finding import Finding, Fix, Hazard, Safety
from syncscope.model.source import Place, Span


def test_waits_without_a_rewrite_name_the_dearest_and_where_to_read_of_it():
    hazard = Hazard("host-read", "", "", ("item",))
    step = [("launch", 0, 3 * MS), ("read", 57, 0), ("work", 3 * MS), ("launch", 0, MS), ("read", 58, 0)]
    waits = next(one for one in summarize(recorded([step] * 8), (), [hazard]).what_if if one.name == "nothing waits")
    assert (
        waits.told == "first the waits of `item` at train.py:57: `syncscope explain host-read` shows what people write"
    )
    waits = next(one for one in summarize(recorded([step] * 8)).what_if if one.name == "nothing waits")
    assert waits.told == "first the waits of `item` at train.py:57"


@pytest.mark.parametrize("compiled", [True, False])
def test_values_that_would_be_read_at_a_steps_end_are_told_to_be_read_later(compiled, monkeypatch):
    """There the host waits for all of the step, and begins the next with an empty queue."""
    if not compiled:
        monkeypatch.setattr(in_c, "library", lambda: None)
    read, late = ("read", 57, 0), [("work", 2 * MS), ("launch", 0, 6 * MS), ("work", 2 * MS)]
    written, at_end = [("launch", 0, MS), read, *late], [("launch", 0, MS), *late, read]
    waits = rows(recorded([written] * 12))["nothing waits"]
    saved = 1 - length([at_end] * 12) / length([written] * 12)
    told = re.search(r"they save all of that; at each step's end, all at once, only (.*) of a step", waits.told)
    assert told
    assert float(told[1].rstrip("%")) / 100 == pytest.approx(saved, abs=0.005)
    assert waits.saving > (saved + 0.03) * length([written] * 12)


def test_where_a_wait_at_a_steps_end_is_as_good_as_none_nothing_is_said_of_it():
    """The device does little behind the last launch."""
    late = [("work", 4 * MS), ("launch", 0, MS), ("work", 4 * MS)]
    waits = rows(recorded([[("launch", 0, 4 * MS), ("read", 57, 0), *late]] * 12))["nothing waits"]
    assert "step's end" not in waits.told


@pytest.mark.parametrize("safety", [Safety.SUGGEST, Safety.UNSAFE])
def test_the_line_that_comes_first_is_tried_by_the_command_that_is_printed(safety: Safety) -> None:
    waits = [
        ("launch", 0, 4 * MS),
        ("read", 57, 0),
        ("work", 4 * MS),
        ("launch", 0, 4 * MS),
        ("read", 58, 0),
        ("work", 3 * MS),
    ]
    hazard, place = Hazard("host-read", "", "", ("item",)), Place("train.py", 57)
    finding = Finding("host-read", place, 1, 57, 9, Span(0, 1), "", 3, fix=Fix("note the tensor", (), safety))
    found = summarize(
        recorded([[*waits, ("launch", 0, 3 * MS), ("read", 59, 0), ("work", 3 * MS)]] * 8), [finding], [hazard]
    )
    command = "syncscope verify --budget 2m --line train.py:57 YOUR_PROGRAM.py"
    all_waits = next(one for one in found.what_if if one.name == "nothing waits")
    assert all_waits.told == f"first the waits of `item` at train.py:57: note the tensor, which `{command}` tries"
    assert "No command rewrites" not in found.verdict
    assert (
        f"`{command}` measures it, and says where 2m are too few" in found.verdict or "Decision: fix" in found.verdict
    )


def test_a_report_of_twice_the_reads_takes_twice_the_work():
    """A chain that is followed back by hand reads a thousand times a step."""

    def read_so_often(times):
        read = [("launch", 0, MS), ("read", 57, 0), ("work", 2 * MS)]
        return recorded([[*read * times, ("launch", 0, 6 * MS), ("work", 2 * MS)]] * 8)

    assert grows_at_most(summarize, 20, made=read_so_often, times=2.5)
