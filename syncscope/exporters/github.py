"""GitHub's workflow commands: findings as annotations of a pull request.

Format: https://docs.github.com/actions/reference/workflow-commands-for-github-actions (notice, warning and error).
"""

from __future__ import annotations

import os

from syncscope.exporters._alike import offer
from syncscope.exporters._rooted import GITHUB, rooted
from syncscope.model.finding import Finding
from syncscope.model.report import Report
from syncscope.model.source import on_disk

SUFFIX = ".github"
TAKES = {"findings"}
JOINS = True
COMMANDS = True  # its lines are meant for the runner: `::error ...`
LEVEL = {"error": "error", "warning": "warning", "note": "notice"}
RECORDINGS = (".json", ".json.gz", ".records")


def export(report: Report) -> str:
    """One command a line."""
    return "".join(command(finding) + "\n" for finding in report.findings)


def command(finding: Finding) -> str:
    """A finding as a command, of the run as a whole where it is in no file that a pull request can show.

    A column range must not reach over lines, so it is given for one line only.
    """
    place: dict[str, str | int] = {}
    if is_in_project(finding.place.path):
        first, last = finding.file_lines
        place = {"file": rooted(finding.place.path, GITHUB)}
        if finding.place.path == on_disk(finding.place.path):  # else no line of today's file is meant
            place |= {"line": first, "endLine": last}
        if (
            "line" in place and finding.end_line == finding.place.line and not finding.cell
        ):  # columns of a cell are none of its JSON
            place |= {"col": finding.column, "endColumn": finding.end_column}
    place["title"] = f"syncscope ({finding.rule})"
    said = ",".join(f"{key}={escaped(str(value), ',:')}" for key, value in place.items())
    message = f"{finding.source_name}:{finding.place.line}:{finding.column}: {finding.message}"
    if finding.fix:
        message += f"\n{offer(finding.fix)}"
    return f"::{LEVEL[finding.severity]} {said}::{escaped(message)}"


def is_in_project(path: str) -> bool:
    """Whether a file is one of the sources that the runner has checked out, or that lie below the working folder: no library's,
    none of another machine, and no recording."""
    if path.endswith(RECORDINGS) or "://" in path or path == "-":
        return False
    below = rooted(path, GITHUB)
    return not os.path.relpath(below).startswith(os.pardir) or (below != path and not os.path.isabs(below))


def escaped(words: str, more: str = "") -> str:
    """Text as the runner reads it back; properties must not hold `,` and `:` either."""
    for sign in "%\r\n" + more:
        words = words.replace(sign, f"%{ord(sign):02X}")
    return words
