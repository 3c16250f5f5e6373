"""A line for each finding: its place, what is wrong, the rule, and how it can be mended. For many findings, and for `grep`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from syncscope.exporters._source_frame import STYLES
from syncscope.model.finding import Finding, Safety
from syncscope.model.words import visible

if TYPE_CHECKING:
    from syncscope.model.report import Report

SUFFIX = ""
TAKES = {"findings"}
JOINS = True
MARKS = {Safety.SAFE: "[fix]", Safety.UNSAFE: "[unsafe fix]", Safety.SUGGEST: "[by hand]"}


def export(report: Report) -> str:
    """All findings, in order, and then what waits in a step, too."""
    return text((*report.findings, *report.also))


def text(findings: Iterable[Finding], *, color: bool = False) -> str:
    """All findings, in colours where a terminal shows them."""

    def paint(style: str, words: str) -> str:
        return f"\x1b[{STYLES[style]}m{words}\x1b[0m" if color else words

    lines = []
    for finding in findings:
        where = f"{visible(finding.source_name)}:{finding.place.line}:{finding.column}"
        if finding.short and finding.fix is None:
            said = f"also waits in a step: {visible(finding.message)} ({finding.heat.words})"
            lines.append(f"{paint('place', where)}: {said} [{paint('rule', finding.rule)}]\n")
            continue
        mended = f" {paint('fix', MARKS[finding.fix.safety])}" if finding.fix else ""
        rule = paint(finding.severity, finding.rule)
        lines.append(f"{paint('place', where)}: {rule}: {visible(finding.message)}{mended}\n")
    return "".join(lines)
