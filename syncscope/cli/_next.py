"""The command that settles what a recording leaves open, with the program's own arguments: ready to be pasted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncscope.model.answer import Decision
from syncscope.model.finding import Safety

if TYPE_CHECKING:
    from syncscope.model.report import Report


def settles(report: Report, command: str, device: str | None) -> str:
    """What to run after this report of a `command` (program and arguments) on a device that it was lent; "" for nothing.

    Nothing is to be run where the answer is *leave*, or where fixes were tried in the run itself. What the report says to do
    first is what is tried: suggestions, too, which nobody tries who is not asked for their lines.
    """
    if report.answer is None or report.answer.decision is Decision.LEAVE or report.verified or not report.lines:
        return ""
    if named := next((one.command for one in report.what_if if one.command), ""):
        return f"next: `{named}` times steps with and without the rewrites"
    fixes = [line.finding.fix for line in report.lines if line.finding and line.finding.fix]
    lent = f"--device {device} " if device else ""
    if any(fix.safety is not Safety.SUGGEST for fix in fixes):
        return f"next: `syncscope verify {lent}{command}` times steps with and without the rewrites"
    return f"next: `syncscope verify --stale {lent}{command}` times steps without these waits"
