"""Stacks by line for other people's viewers: every ns of a step is in them, in the form that these viewers document."""

import json
import re

import jsonschema
import pytest

from syncscope.exporters import collapsed, speedscope
from syncscope.model.report import Report

# what speedscope's file-format-spec.ts says of a file whose profiles are sampled
FRAME = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "file": {"type": "string"},
        **{key: {"type": "number"} for key in ("line", "col")},
    },
}
PROFILE = {
    "type": "object",
    "required": ["type", "name", "unit", "startValue", "endValue", "samples", "weights"],
    "properties": {
        "type": {"const": "sampled"},
        "unit": {"enum": ["bytes", "microseconds", "milliseconds", "nanoseconds", "none", "seconds"]},
        **{key: {"type": "number"} for key in ("startValue", "endValue")},
        "samples": {"type": "array", "items": {"type": "array", "items": {"type": "integer", "minimum": 0}}},
        "weights": {"type": "array", "items": {"type": "number"}},
    },
}
SCHEMA = {
    "type": "object",
    "required": ["$schema", "shared", "profiles"],
    "properties": {
        "$schema": {"const": "https://www.speedscope.app/file-format-schema.json"},
        "shared": {
            "type": "object",
            "required": ["frames"],
            "properties": {"frames": {"type": "array", "items": FRAME}},
        },
        "profiles": {"type": "array", "items": PROFILE},
    },
}


@pytest.mark.parametrize("empty", [False, True])
def test_a_file_of_speedscope_is_as_its_format_says(report, empty):
    value = json.loads(speedscope.export(Report() if empty else report))
    jsonschema.validate(value, SCHEMA)
    for profile in value["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])
        assert all(number < len(value["shared"]["frames"]) for stack in profile["samples"] for number in stack)


def test_a_librarys_line_stands_below_the_users_and_all_of_a_step_is_there(report):
    value = json.loads(speedscope.export(report))
    host, device = value["profiles"]
    names = [frame["name"] for frame in value["shared"]["frames"]]
    stacks = {tuple(names[n] for n in stack): ns for stack, ns in zip(host["samples"], host["weights"], strict=True)}
    assert stacks["train.py:10", "losses/focal.py:40 focal", "in the driver"] == 500_000
    assert host["endValue"] == 9_000_000, "a step"
    assert device["endValue"] == 6_004_000, "what the device works of it"


def test_collapsed_stacks_add_up_to_the_same(report):
    sums = {"host": 0, "device": 0}
    for line in collapsed.export(report).splitlines():
        found = re.fullmatch(r"(host|device);(.+) (\d+)", line)
        assert found, line
        sums[found[1]] += int(found[3])
    assert sums == {"host": 9_000_000, "device": 6_004_000}
    assert "device;train.py:5 loss;conv2d 3500000" in collapsed.export(report).splitlines()
    assert collapsed.export(Report()) == ""
