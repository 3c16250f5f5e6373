"""Findings as the list that `syncscope lint --format json` prints."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from syncscope.exporters._source_frame import CONFIDENCE
from syncscope.model.finding import Finding


def as_json(findings: Iterable[Finding]) -> str:
    """A JSON list, one object for each finding; lines and columns begin at 1, edits are UTF-8 byte offsets."""
    return json.dumps([as_object(f) for f in findings], indent=2) + "\n"


def as_object(finding: Finding) -> dict[str, Any]:
    """One finding. `cell` is there in notebooks only."""
    fix = finding.fix
    return {
        "path": finding.place.path,
        **({"cell": finding.cell} if finding.cell else {}),
        "line": finding.place.line,
        "column": finding.column,
        "end_line": finding.end_line,
        "end_column": finding.end_column,
        "rule": finding.rule,
        "confidence": CONFIDENCE[finding.confidence],
        "severity": finding.severity,
        "hot": finding.hot,
        "heat": finding.hotness,
        "function": finding.function,
        "message": finding.message,
        "why": list(finding.why),
        "fingerprint": finding.fingerprint,
        "fix": fix
        and {
            "title": fix.title,
            "safety": fix.safety.value,
            "changes": fix.changes,
            "edits": [{"start": e.span.start, "end": e.span.end, "text": e.text} for e in fix.edits],
        },
    }
