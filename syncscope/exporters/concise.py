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
    return text(report.findings) + also(report.also)


def text(findings: Iterable[Finding], *, color: bool = False) -> str:
    """All findings, in colours where a terminal shows them."""
    lines = []
    for finding in findings:
        mended = f" {_paint('fix', MARKS[finding.fix.safety], color)}" if finding.fix else ""
        rule = _paint(finding.severity, finding.rule, color)
        lines.append(f"{_where(finding, color)}: {rule}: {visible(finding.message)}{mended}\n")
    return "".join(lines)


def also(waits: Iterable[Finding], *, color: bool = False) -> str:
    """What waits in a step, too, and fails nothing: each with the reason for which it is no finding."""
    lines = []
    for each in waits:
        said = f"also waits in a step: {visible(each.message)} ({each.heat.words})"
        lines.append(f"{_where(each, color)}: {said} [{_paint('rule', each.rule, color)}]\n")
    return "".join(lines)


def _where(finding: Finding, color: bool) -> str:
    return _paint("place", f"{visible(finding.source_name)}:{finding.place.line}:{finding.column}", color)


def _paint(style: str, words: str, color: bool) -> str:
    return f"\x1b[{STYLES[style]}m{words}\x1b[0m" if color else words
