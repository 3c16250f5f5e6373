"""What `syncscope run` says to run next: the command that tries what the report says to do first."""

from dataclasses import replace

import pytest

from syncscope.cli import _next
from syncscope.model.answer import Answer, Decision
from syncscope.model.finding import Finding, Fix, Safety
from syncscope.model.report import Line, Report
from syncscope.model.source import Place, Span
from syncscope.model.what_if import WhatIf

TRY = Answer(Decision.TRY, 0.1, -0.1, 0.2, 0.5, 84, 9, "measuring it settles it")
NAMED = "syncscope verify --budget 2m --line train.py:57 --device ocl train.py"


def said(safety: Safety | None, decision: Decision = Decision.TRY, named: str = "") -> str:
    place, fix = Place("train.py", 57), Fix("leave it out", (), safety) if safety else None
    found = Finding("host-read", place, 1, 57, 9, Span(0, 1), "", 3, fix=fix)
    waits = WhatIf("nothing waits", 1e6, 0.0, 2e6, 5e6, answered=True, command=named)
    lines = (Line("item", place, 1, 1e6, 1e6, finding=found),)
    report = Report(answer=replace(TRY, decision=decision), lines=lines, what_if=(waits,))
    return _next.settles(report, "train.py", "ocl")


@pytest.mark.parametrize("safety", Safety)
def test_the_command_of_the_report_is_the_one_to_run_next(safety):
    """A suggestion is tried, too: `verify` leaves it out where its line is not asked for."""
    assert said(safety, named=NAMED) == f"next: `{NAMED}` times steps with and without the rewrites"


@pytest.mark.parametrize(
    ("safety", "how"),
    [(Safety.UNSAFE, "verify --device ocl train.py` times steps with"), (Safety.SUGGEST, "--stale"), (None, "--stale")],
)
def test_where_the_report_names_none_what_is_written_is_tried(safety, how):
    assert how in said(safety)


def test_what_stale_cannot_answer_is_not_said_to_be_timed():
    """A DQN that copies priorities in each step: `--stale` was said to time it without these waits, and left the first."""
    copies, reads = Line("cpu", Place("dqn.py", 48), 1, 1e6, 1e6), Line("item", Place("dqn.py", 77), 1, 1e5, 1e5)
    both = _next.settles(Report(answer=TRY, lines=(copies, reads)), "dqn.py", "ocl")
    assert both == (
        "next: `syncscope verify --stale --device ocl dqn.py` times steps without the waits for single values; the wait first "
        "named, `cpu` at dqn.py:48, stays in them"
    )
    other = _next.settles(Report(answer=TRY, lines=(reads, copies)), "dqn.py", "ocl")
    assert other.endswith(" times steps without the waits for single values")
    assert _next.settles(Report(answer=TRY, lines=(copies,)), "dqn.py", "ocl") == ""


def test_nothing_is_to_be_run_where_waits_are_to_be_left():
    assert said(Safety.SAFE, Decision.LEAVE, NAMED) == ""
