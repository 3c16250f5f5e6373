"""What was measured of fixes, by `syncscope verify` or in the run itself, beside what a recording says of their lines."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from syncscope.model.answer import Answer, Decision
from syncscope.model.report import Line, Report
from syncscope.model.source import Place
from syncscope.model.tried import FixesTried, FixTried

GOOD = ("equal", "within")  # values
SLIGHT = 0.02  # of a step: what gives surely less is not worth a change


def with_measured(report: Report, verified: Mapping[str, Any] | None) -> Report:
    """The report with what was found: lines have answers that are measured, and so has all, as far as it was measured."""
    if verified is None:
        return report
    equal = f"equal, bit for bit{in_steps(verified.get('compared_steps'))}"
    lines = tuple(_line(line, verified["fixes"], equal) for line in report.lines)
    return replace(_with_answer(report, verified), lines=lines, verified=verified)


def _with_answer(report: Report, verified: Mapping[str, Any]) -> Report:
    """The report whose answer is what the rewrites that stay gave; where none gained anything, they are no ground for `FIX`."""
    ratio, low, high, fixes = (verified[name] for name in ("ratio", "low", "high", "fixes"))
    if low is None or not fixes or verified["values"] not in GOOD:
        return report
    if any(fix["kept"] for fix in fixes):
        share, least, most = 1 - ratio, 1 - high, 1 - low
        found = Answer(Decision.FIX, share, least, most, why="measured, with the rewrites that stay", tried=True)
        per = "step" if report.steps else "recording"
        lead = f"Measured: with the rewrites that stay a {per} is {found.likely('shorter')}."
        return replace(report, answer=found, lead=lead, verdict=f"Decision: {found.decision}. {lead}")
    if report.answer is None or report.answer.decision is not Decision.FIX:
        return report
    why = f"its rewrites were tried, and with them a step is {ratio:.3f} ({low:.3f} to {high:.3f}) of what it was"
    return replace(report, answer=replace(report.answer, decision=Decision.TRY, why=why, doubt=why))


def in_steps(compared: int | None) -> str:
    """In how many steps values were compared, behind what they are; "" where nobody knows."""
    return f", in the {compared} step{'s' * (compared != 1)} compared" if compared else ""


def _line(line: Line, fixes: Sequence[Mapping[str, Any]], equal: str) -> Line:
    """The line with what was measured of its fix, of several the one that saves most. `equal` says of how much values are."""
    here = [
        fix for fix in fixes if line.place and fix["line"] == line.place.line and _same(fix["path"], line.place.path)
    ]
    known = [fix for fix in here if fix["low"] is not None and fix["values"] in GOOD]
    if known:
        return replace(line, answer=_answer(min(known, key=lambda fix: fix["ratio"]), line.answer, equal))
    if refused := [fix for fix in here if fix["values"] == "changed"]:
        why = f"its rewrite was tried, and refused: {refused[0]['why']}"
        before = line.answer or Answer(Decision.UNKNOWN)
        return replace(line, answer=replace(before, decision=Decision.LEAVE, why=why))
    return line


def _answer(fix: Mapping[str, Any], before: Answer | None, equal: str) -> Answer:
    """What to do about a line, by what its rewrite saves of a step."""
    share, low, high = 1 - fix["ratio"], 1 - fix["high"], 1 - fix["low"]
    decision = _decision(fix)
    values = equal if fix["values"] == "equal" else "within what its text says"
    ends = f"{fix['low']:.3f} to {fix['high']:.3f}"
    why = f"measured: with its rewrite a step is {fix['ratio']:.3f} ({ends}) of what it was, and values are {values}"
    if decision is Decision.TRY:
        why += "; whether it gains is open"
    return Answer(decision, share, low, high, before.bound if before else None, why=why)


def _decision(fix: Mapping[str, Any]) -> Decision:
    if fix["kept"]:
        return Decision.FIX
    if fix["values"] == "changed":
        return Decision.LEAVE
    if fix["low"] is None:
        return Decision.UNKNOWN
    return Decision.LEAVE if 1 - fix["low"] < SLIGHT else Decision.TRY


def tried(verified: Mapping[str, Any]) -> FixesTried:
    """What was found, as values."""
    same = "rule", "title", "safety", "ratio", "low", "high", "values", "why"
    fixes = tuple(
        FixTried(Place(fix["path"], fix["line"]), decision=_decision(fix), **{name: fix[name] for name in same})
        for fix in verified["fixes"]
    )
    ratio, low, high = (verified[name] for name in ("ratio", "low", "high"))
    return FixesTried(fixes, ratio, low, high, verified["steps"], verified["seconds"], tuple(verified["notes"]))


def _same(one: str, other: str) -> bool:
    """Whether two paths are of one file, as far as can be told where it may lie elsewhere."""
    if os.path.isabs(one) and os.path.isabs(other):
        return one == other
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")
