"""The command that a report ends with is for the line that it names first, and for the device that was recorded."""

from dataclasses import replace

import pytest
from drawn import Device, device_early
from test_what_if import MS, recorded

from syncscope.analysis.summary import summarize
from syncscope.analysis.verdict import verdict
from syncscope.cli import _next
from syncscope.model.answer import Decision
from syncscope.model.finding import Finding, Fix, Safety
from syncscope.model.source import Place, Span

FIRST, SECOND = 57, 58


def found(line: int, title: str) -> Finding:
    """What the linter says of a line of a step, with a rewrite of this title; "" for none."""
    fix = Fix(title, (), Safety.UNSAFE) if title else None
    return Finding("host-read", Place("train.py", line), 1, line, 9, Span(0, 1), "", 3, fix=fix)


def reported(*titles: str, **meta: object):
    """Two lines that are to be fixed, of which the first costs more, beside others: what is saved is to be measured."""
    step = [("launch", 0, 6 * MS), ("read", FIRST, 0), ("work", 1.3 * MS), ("launch", 0, 6 * MS), ("read", SECOND, 0)]
    trace = Device().run([[*step, ("work", MS)]] * 20)[0]
    beside = {"others": 0.4, "devices": [{"name": "a processor", "processor": True}]}
    findings = [found(line, title) for line, title in zip((FIRST, SECOND), titles, strict=True)]
    report = summarize(replace(trace, meta=trace.meta | beside | meta), findings)
    assert report.answer.decision is Decision.TRY
    assert "first `item` at train.py:57" in report.verdict
    return report


def test_where_no_command_rewrites_the_line_that_is_named_first_none_for_another_is_printed():
    said = reported("", "note the tensor").verdict
    assert "No command rewrites train.py:57: `syncscope explain host-read` shows what people write, and" in said
    assert "`syncscope verify --stale --budget 2m --line train.py:57 YOUR_PROGRAM.py`" in said
    assert "--line train.py:58" not in said


@pytest.mark.parametrize(("second", "measured"), [("", "train.py:57 alone"), ("add up", "these 2 lines")])
def test_what_the_command_measures_is_named(second, measured):
    assert f"YOUR_PROGRAM.py` measures {measured}, and says where" in reported("note the tensor", second).verdict


@pytest.mark.parametrize("title", ["", "note the tensor"])
def test_of_a_device_that_was_lent_the_command_lends_it_again(title):
    said = reported(title, "add up", stands_for="cuda").verdict
    assert " --device ocl YOUR_PROGRAM.py`" in said


def test_what_run_says_to_run_next_says_that_the_line_named_first_stays():
    report = replace(reported("", "note the tensor"), what_if=())
    said = _next.settles(report, "train.py", "ocl")
    assert said.endswith("with and without the rewrites; the wait first named, `item` at train.py:57, has none")
    report = replace(reported("note the tensor", ""), what_if=())
    assert _next.settles(report, "train.py", "ocl").endswith(" times steps with and without the rewrites")


def test_a_share_above_what_the_plan_saves_is_related_to_it():
    """The plan is without what the rest would give; a share is of all."""
    report = reported("note the tensor", "")
    share = report.lines[report.plan[0]].price.share
    for saving, told in ((0.9 * share, True), (1.1 * share, False)):
        said = verdict(replace(report, plan_saving=saving)).verdict
        assert ("is its part of what all waits save" in said) is told


def left_at_the_end(others: float) -> tuple[float, float]:
    """What all waits save, and what is left of it where all is read at a step's end, beside others that had so much; as
    parts of a step of a recording whose replay does not fit."""
    late = [("work", 2 * MS), ("launch", 0, 6 * MS), ("work", 2 * MS)]
    trace = device_early(recorded([[("launch", 0, MS), ("read", FIRST, 0), *late]] * 12), 3 * MS // 2)
    beside = {"others": others, "devices": [{"name": "a processor", "processor": True}]}
    report = summarize(replace(trace, meta=trace.meta | beside))
    told = next(row.told for row in report.what_if if row.name == "nothing waits")
    return report.answer.share, float(told.rpartition("all at once, only ")[2].split("%")[0]) / 100


def test_where_less_is_believed_of_what_all_waits_save_less_is_left_at_a_steps_end():
    """A step's end was said to save 37 % beside waits that save 20 %."""
    (quiet, of_quiet), (crowded, of_crowded) = left_at_the_end(0.1), left_at_the_end(0.9)
    assert crowded < 0.8 * quiet
    assert of_crowded / crowded == pytest.approx(of_quiet / quiet, abs=0.01)
