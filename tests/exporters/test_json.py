import dataclasses
import json
from pathlib import Path

import jsonschema
import pytest

from syncscope.exporters import json as exporter
from syncscope.model.report import Line, Price, Report
from syncscope.model.source import Place

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "report-schema.json").read_text())


KNOWN = jsonschema.Draft202012Validator(SCHEMA)  # to look through the schema itself takes longer than all else here


def exported(report: Report):
    value = json.loads(exporter.export(report))
    KNOWN.validate(value)
    return value


def test_the_schema_is_one():
    KNOWN.check_schema(SCHEMA)


@pytest.mark.parametrize("lost", ["trace", "sources", "fidelity", "steps", "lines", "findings", "saving"])
def test_a_report_without_some_part_is_still_as_the_schema_says(report, lost):
    exported(dataclasses.replace(report, plan=(), **{lost: getattr(Report(), lost)}))


def test_an_empty_report_is_as_the_schema_says():
    assert exported(Report())["trace"] is None


def test_the_schema_refuses_what_the_exporter_does_not_write(report):
    value = exported(report)
    value["lines"][0]["cost_ms"] = 1
    with pytest.raises(jsonschema.ValidationError, match="cost_ms"):
        KNOWN.validate(value)


def test_times_are_milliseconds_per_step(report):
    value = exported(report)
    assert {k: value[k] for k in ("step_ms", "device_busy", "fidelity", "total_saving_ms")} == {
        "step_ms": 9.0,
        "device_busy": 0.667,
        "fidelity": 0.0021,
        "total_saving_ms": 1.4,
    }
    step = value["steps"][1]
    assert step == {"index": 1, "start_ms": 9.0, "ms": 10.0, "busy_ms": 6.0, "uses_ms": step["uses_ms"]}
    assert sum(step["uses_ms"].values()) == pytest.approx(9.0)
    assert sum(part["ms"] for part in value["uses"]["parts"]) == pytest.approx(value["uses"]["step_ms"])
    assert value["answer"] == {
        "decision": "fix",
        "share": 0.155556,
        "low": 0.12,
        "high": 0.2,
        "bound": 0.333333,
        "offered": None,
        "most": None,
        "measured": 24,
        "loops": 9,
        "along": None,
        "why": "likely 15.6% of a step",
    }
    assert [line["answer"] and line["answer"]["decision"] for line in value["lines"]] == ["fix", "try", None, None]
    assert value["bound"]["left"] == "device"
    first = value["reads"][0]
    assert {k: first[k] for k in first if k not in ("answer", "fix", "share_error_ms", "share_range_ms")} == {
        "path": "train.py",
        "line": 5,
        "caller": None,
        "op": "nonzero",
        "module": "loss",
        "function": "",
        "count": 1.0,
        "blocked_ms": 5.0,
        "idle_after_ms": 1.2,
        "saved_alone_ms": 0.1,
        "saved_last_ms": 2.0,
        "share_ms": 1.1,
        "deferred_ms": 0.9,
        "merged_ms": None,
        "asynchronous_ms": None,
        "fallback": False,
        "rule": "nonzero",
        "advice": None,
        "why": None,
    }


def test_each_line_has_what_it_takes_of_a_step(report):
    value = exported(report)
    assert value["by_line"][1] == {
        "path": "/env/lib/python3.12/site-packages/losses/focal.py",
        "line": 40,
        "function": "focal",
        "library": True,
        "caller": {"path": "train.py", "line": 10},
        "launches": 3.0,
        "host_ms": 1.5,
        "device_ms": 1.0,
        "backward_ms": 1.5,
        "waits": 0.0,
        "idle_ms": 0.0,
    }
    parts = ("device_ms", "backward_ms", "idle_ms")
    assert sum(line[part] for line in value["by_line"] for part in parts) == pytest.approx(value["uses"]["step_ms"])
    assert value["by_line"][-1]["path"] is None


def test_what_would_help_is_there(report):
    first, second = exported(report)["what_if"]
    assert first["lines"][1] == {"path": "train.py", "line": 5}
    assert {name: second[name] for name in second if name != "lines"} == {
        "name": "nothing waits",
        "saving_ms": 1.4,
        "low_ms": 1.0,
        "high_ms": 1.8,
        "bound_ms": 2.0,
        "advice": "torch.where instead of index assignment",
        "loops": 0,
        "bought": False,
        "first": False,
    }


def test_the_plan_and_the_groups_are_there(report):
    value = exported(report)
    assert value["plan"] == [{"path": "train.py", "line": 5, "op": "nonzero", "read": 0}]
    assert (value["plan_saving_ms"], value["lean_step_ms"], value["lean_saving_ms"]) == (1.3, 8.0, 1.5)
    assert value["groups"] == [
        {
            "kind": "function",
            "name": "loss",
            "count": 2.0,
            "blocked_ms": 5.2,
            "saved_alone_ms": 1.2,
            "saved_last_ms": 1.4,
            "share_ms": 1.3,
        }
    ]


def test_a_rewrite_comes_with_its_diff(report):
    fix = exported(report)["lines"][0]["fix"]
    assert (fix["title"], fix["safety"]) == ("torch.where instead of index assignment", "safe")
    assert [line for line in fix["diff"].splitlines() if line[0] in "+-"] == [
        "--- a/train.py",
        "+++ b/train.py",
        "-    background = torch.nonzero(target == 9, as_tuple=True)",
        "-    target[background] = -1",
        "+    target = torch.where(target == 9, -1, target)",
    ]


def test_without_the_source_there_is_no_diff(report):
    assert exported(dataclasses.replace(report, sources={}))["lines"][0]["fix"]["diff"] is None


def test_findings_say_whether_they_ran(report):
    assert [(f["line"], f["ran"]) for f in exported(report)["findings"]] == [(5, True), (7, True), (10, False)]


def test_ops_on_one_line_are_one_line_whose_savings_do_not_add_up():
    at = Place("train.py", 3)
    lines = (
        Line("item", at, 1, 2e6, 1e6, price=Price(1e6, 2e6, 1.5e6, 0.0), rule="item"),
        Line("nonzero", at, 2, 1e6, 0.0, price=Price(0.0, 1e6, 0.5e6, 0.0)),
        Line("item", None, 1, 1e6, 0.0),
        Line("item", None, 1, 1e6, 0.0),
    )
    value = exported(Report(lines=lines))
    assert len(value["reads"]) == 4
    assert [(line["op"], line["count"], line["blocked_ms"], line["share_ms"]) for line in value["lines"]] == [
        ("item, nonzero", 3, 3.0, 2.0),
        ("item", 1, 1.0, None),
        ("item", 1, 1.0, None),
    ]
    assert value["lines"][0]["saved_alone_ms"] is None
    assert value["lines"][0]["rule"] == "item"
