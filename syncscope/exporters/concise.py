"""A line for each finding: its place, what is wrong, the rule, and how it can be mended. For many findings, and for `grep`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from syncscope.exporters._alike import like_it
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
        mended = f" {_paint('fix', MARKS[finding.fix.tier], color)}" if finding.fix else ""
        rule = _paint(finding.severity, finding.rule, color)
        lines.append(f"{_where(finding, color)}: {rule}: {visible(finding.message)}{mended}\n")
    return "".join(lines)


def also(waits: Iterable[Finding], *, color: bool = False) -> str:
    """What waits in a step, too, and fails nothing: each with the reason for which it is no finding."""
    return also_together([[each] for each in waits], color=color)


def also_together(groups: Iterable[Sequence[Finding]], *, color: bool = False) -> str:
    """The same of groups that have the same reason: the first of each, with the lines of the others."""
    lines = []
    for first, *more in groups:
        said = f"also waits in a step: {visible(first.message)} ({first.heat.words})"
        others = f" ({like_it(more)})" if more else ""
        lines.append(f"{_where(first, color)}: {said} [{_paint('rule', first.rule, color)}]{others}\n")
    return "".join(lines)


def _where(finding: Finding, color: bool) -> str:
    return _paint("place", f"{visible(finding.source_name)}:{finding.place.line}:{finding.column}", color)


def _paint(style: str, words: str, color: bool) -> str:
    return f"\x1b[{STYLES[style]}m{words}\x1b[0m" if color else words
