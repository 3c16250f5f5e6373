"""SARIF 2.1.0, the format that code scanning reads.

Format: https://docs.oasis-open.org/sarif/sarif/v2.1.0/. A `Fix` maps onto SARIF's one to one: its edits are text regions, which
hold whatever the encoding of the file, as byte regions would not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

from syncscope.exporters._fingerprints import fingerprints
from syncscope.exporters._rooted import GITHUB, GITLAB, rooted
from syncscope.model.finding import CONFIDENCE, Finding, Fix, Hazard
from syncscope.model.report import Report
from syncscope.model.source import Span, on_disk

SUFFIX = ".sarif"
TAKES = {"findings"}
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LINK = re.compile(r"\[([^\[\]]*)\]\(")  # `x[i](y)` is code, and must not become a link of the viewer's
RANK = {"low": 20.0, "medium": 60.0, "high": 95.0}


def export(report: Report) -> str:
    """A log of one run."""
    told = {hazard.name: hazard for hazard in report.hazards}
    names = list(dict.fromkeys([*told, *(f.rule for f in report.findings)]))
    driver = {
        "name": "syncscope",
        "semanticVersion": version("syncscope"),
        "rules": [rule(name, told.get(name)) for name in names],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [
            result(each, names.index(each.rule), report.sources) | {"partialFingerprints": {"wait/v1": its}}
            for each, its in zip(report.findings, fingerprints(report.findings), strict=True)
        ],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def rule(name: str, hazard: Hazard | None) -> dict[str, Any]:
    """What a reader of the log is told of a rule."""
    said: dict[str, Any] = {"id": name, "name": name.title().replace("-", "")}
    if hazard:
        said["shortDescription"] = {"text": hazard.summary}
        said["fullDescription"] = {"text": hazard.prose or hazard.summary}
        page = hazard.prose or hazard.summary  # whole, so that no address is needed to read it
        said["help"] = {
            "text": f"{page}\n\nWith an example: syncscope explain {name}",
            "markdown": f"{page}\n\nWith an example: `syncscope explain {name}`",
        }
        if hazard.address:
            said["helpUri"] = hazard.address
    return said


def result(finding: Finding, index: int, sources: Mapping[str, bytes]) -> dict[str, Any]:
    """A finding. In a notebook the region counts within a cell, which SARIF has no word for: the message names it."""
    cell = f"cell {finding.cell}: " if finding.cell else ""
    confidence = CONFIDENCE[finding.confidence]
    said: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": finding.severity,
        "rank": RANK[confidence],
        "message": {"text": LINK.sub(r"\\[\1\\](", cell + finding.message)},
        "locations": [{"physicalLocation": location(finding)}],
        "properties": {
            "confidence": confidence,
            "hot": finding.hot,
            "heat": finding.heat.words,
            "why": list(finding.why),
        },
    }
    if finding.function:
        said["locations"][0]["logicalLocations"] = [{"fullyQualifiedName": finding.function, "kind": "function"}]
    code = sources.get(finding.source_name)
    if finding.fix and not finding.cell and code is not None:
        said["fixes"] = [fix(finding.fix, finding, code)]
    return said


def location(finding: Finding) -> dict[str, Any]:
    """File and region; the end is exclusive there too."""
    first, last = finding.file_lines
    region = {"startLine": first, "startColumn": finding.column, "endLine": last, "endColumn": finding.end_column}
    if finding.cell:  # whose columns are none of its JSON
        region = {"startLine": first, "endLine": last}
    if finding.place.path != on_disk(finding.place.path):  # no line of today's file is meant
        return {"artifactLocation": artifact(finding)}
    return {"artifactLocation": artifact(finding), "region": region}


def artifact(finding: Finding) -> dict[str, str]:
    """The file as a URI reference, relative where the path is."""
    path = rooted(finding.place.path, GITHUB, GITLAB).replace("\\", "/")
    return {"uri": f"file://{quote(path)}" if path.startswith("/") else quote(path)}


def fix(offered: Fix, finding: Finding, code: bytes) -> dict[str, Any]:
    """A fix: its description says how safe it is, since SARIF has no field for that."""
    changes = f": {offered.words}" if offered.words else ""
    replacements = [{"deletedRegion": region(e.span, code), "insertedContent": {"text": e.text}} for e in offered.edits]
    return {
        "description": {"text": f"{offered.title} ({offered.standing}{changes})"},
        "artifactChanges": [{"artifactLocation": artifact(finding), "replacements": replacements}],
    }


def region(span: Span, code: bytes) -> dict[str, int]:
    """A span of the code in lines and characters."""
    (line, column), (end_line, end_column) = (position(at, code) for at in (span.start, span.end))
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}


def position(at: int, code: bytes) -> tuple[int, int]:
    """Line and column of a byte, both from 1."""
    return code.count(b"\n", 0, at) + 1, len(code[code.rfind(b"\n", 0, at) + 1 : at].decode("utf-8", "replace")) + 1
