"""The command that settles what a recording leaves open, with the program's own arguments: ready to be pasted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncscope.model.answer import Decision
from syncscope.model.finding import Safety
from syncscope.model.ops import SINGLE

if TYPE_CHECKING:
    from syncscope.model.report import Report


def settles(report: Report, command: str, device: str | None) -> str:
    """What to run after this report of a `command` (program and arguments) on a device that it was lent; "" for nothing.

    Nothing is to be run where the answer is *leave*, or where fixes were tried in the run itself, nor where no wait can be left
    out of a run: `--stale` answers reads of single values alone. What the report says to do
    first is what is tried: suggestions, too, which nobody tries who is not asked for their lines.
    """
    if report.answer is None or report.answer.decision is Decision.LEAVE or report.verified or not report.lines:
        return ""
    if tried := next((one.command for one in report.what_if if one.command), ""):
        return f"next: `{tried}` times steps with and without the rewrites"
    first = report.lines[report.plan[0]] if report.plan else report.lines[0]
    named = f"the wait first named, `{first.op}`{f' at {first.where}' if first.where else ''}"
    fixes = [line.finding.fix for line in report.lines if line.finding and line.finding.fix]
    lent = f"--device {device} " if device else ""
    if any(fix.safety is not Safety.SUGGEST for fix in fixes):
        stays = "" if first.finding is None or first.finding.fix else f"; {named}, has none"
        return f"next: `syncscope verify {lent}{command}` times steps with and without the rewrites{stays}"
    of_numbers = [line for line in report.lines if line.op in SINGLE]
    if not of_numbers:
        return ""  # nothing of what waits can be answered late
    these = "these waits" if len(of_numbers) == len(report.lines) else "the waits for single values"
    stays = "" if first in of_numbers else f"; {named}, stays in them"
    return f"next: `syncscope verify --stale {lent}{command}` times steps without {these}{stays}"
