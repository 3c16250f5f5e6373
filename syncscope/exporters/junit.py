"""JUnit XML, for build servers that know tests only: one suite a file, one failed case a finding.

Format: https://github.com/testmoapp/junitxml (there is no official schema; this is what servers agree on).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET

from syncscope.exporters._source_frame import frame
from syncscope.model.finding import Finding
from syncscope.model.report import Limit, Report

SUFFIX = ".junit.xml"
TAKES = {"findings"}
LIMITS = True


def export(report: Report) -> str:
    """The whole document; a report without findings has one passed case, since an empty one counts as broken, unless there are
    limits alone. A limit is a case of the same name whether it holds, is broken or cannot be judged, so that a server sees it
    turn green; what was found of one that holds is its output."""
    by_path: dict[str, list[Finding]] = {}
    for finding in report.findings:
        by_path.setdefault(finding.place.path, []).append(finding)
    broken = len(report.findings) + sum(limit.held is False for limit in report.limits)
    alone = bool(report.limits) and report.trace is None and not report.sources  # as of a job, where nothing was linted
    total = len(report.findings) + len(report.limits) + (not by_path and not alone)
    root = ET.Element("testsuites", name="syncscope", tests=str(total), failures=str(broken))
    root.set("errors", str(sum(limit.held is None for limit in report.limits)))
    for of in dict.fromkeys(limit.of for limit in report.limits):
        root.append(_limits(of or report.name, [limit for limit in report.limits if limit.of == of]))
    for path, findings in by_path.items():
        suite = ET.SubElement(root, "testsuite", name=path, tests=str(len(findings)), failures=str(len(findings)))
        for finding in findings:
            suite.append(case(finding, report.sources))
    if not by_path and not alone:
        suite = ET.SubElement(root, "testsuite", name="syncscope", tests="1", failures="0")
        linted = report.trace is None or bool(report.sources)
        name = "no findings" if linted else "nothing was linted"
        only = ET.SubElement(suite, "testcase", name=name, classname="syncscope")
        if not linted:
            ET.SubElement(only, "skipped", message="no source file of the recording was linted")
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _limits(of: str, limits: Sequence[Limit]) -> ET.Element:
    """The limits as a suite of the recording, or of the job."""
    count = {held: str(sum(limit.held is held for limit in limits)) for held in (False, None)}
    suite = ET.Element("testsuite", name=of or "syncscope", tests=str(len(limits)))
    suite.set("failures", count[False])
    suite.set("errors", count[None])
    for limit in limits:
        one = ET.SubElement(suite, "testcase", name=limit.name, classname=of or "syncscope")
        if limit.held and limit.words:
            ET.SubElement(one, "system-out").text = limit.words
        elif not limit.held:
            ET.SubElement(one, "error" if limit.held is None else "failure", type="limit", message=limit.words)
    return suite


def case(finding: Finding, sources: Mapping[str, bytes]) -> ET.Element:
    """A finding as a failed case."""
    name = f"{finding.rule} at {finding.source_name}:{finding.place.line}:{finding.column}"
    element = ET.Element("testcase", name=name, classname=finding.source_name, file=finding.place.path)
    element.set("line", str(finding.place.line))
    failure = ET.SubElement(element, "failure", type=finding.rule, message=finding.message)
    lines = sources.get(finding.source_name, b"").decode("utf-8", "replace").split("\n")
    failure.text = frame(finding, lines)
    return element
