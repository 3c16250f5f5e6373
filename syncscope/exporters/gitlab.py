"""GitLab's code quality report, a subset of Code Climate's issues.

Format: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import Any

from syncscope.model.finding import Finding
from syncscope.model.report import Report

SUFFIX = ".gl-code-quality.json"
TAKES = {"findings"}
SEVERITY = {"error": "critical", "warning": "major", "note": "minor"}


def export(report: Report) -> str:
    """A JSON list of issues."""
    seen: Counter[tuple[str, str]] = Counter()
    return json.dumps([issue(finding, seen) for finding in report.findings], indent=2) + "\n"


def issue(finding: Finding, seen: Counter[tuple[str, str]]) -> dict[str, Any]:
    """A finding. Its fingerprint is the same as long as its statement is, and never that of another finding."""
    first, last = finding.file_lines
    same = (finding.source_name, finding.fingerprint)
    seen[same] += 1
    unique = hashlib.sha256("\0".join([*same, str(seen[same])]).encode()).hexdigest()
    return {
        "description": finding.message,
        "check_name": finding.rule,
        "fingerprint": unique,
        "severity": SEVERITY[finding.severity],
        "location": {
            "path": finding.place.path,
            "positions": {
                "begin": {"line": first} | ({} if finding.cell else {"column": finding.column}),
                "end": {"line": last} | ({} if finding.cell else {"column": finding.end_column}),
            },
        },
    }
