"""GitLab's code quality report, a subset of Code Climate's issues.

Format: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

import json
from typing import Any

from syncscope.exporters._fingerprints import fingerprints
from syncscope.exporters._rooted import GITLAB, rooted
from syncscope.model.finding import Finding
from syncscope.model.report import Report

SUFFIX = ".gl-code-quality.json"
TAKES = {"findings"}
SEVERITY = {"error": "critical", "warning": "major", "note": "minor"}


def export(report: Report) -> str:
    """A JSON list of issues."""
    each = zip(report.findings, fingerprints(report.findings), strict=True)
    return json.dumps([issue(finding, its) for finding, its in each], indent=2) + "\n"


def issue(finding: Finding, fingerprint: str) -> dict[str, Any]:
    """A finding. By its fingerprint GitLab tells it from what the target branch has."""
    first, last = finding.file_lines
    return {
        "description": finding.message,
        "check_name": finding.rule,
        "fingerprint": fingerprint,
        "severity": SEVERITY[finding.severity],
        "location": {
            "path": rooted(finding.place.path, GITLAB),
            "positions": {
                "begin": {"line": first} | ({} if finding.cell else {"column": finding.column}),
                "end": {"line": last} | ({} if finding.cell else {"column": finding.end_column}),
            },
        },
    }
