"""Where a step goes, by line, for speedscope (https://www.speedscope.app): a profile of the host, and one of the device.

Both are of one step, in the mean of those that are counted. Format:
https://github.com/jlfwong/speedscope/blob/main/src/lib/file-format-spec.ts, profiles of type `sampled`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from syncscope.exporters import _stacks as stacks
from syncscope.exporters._called import title
from syncscope.model.report import Report
from syncscope.model.trace import Table

SUFFIX = ".speedscope.json"
TAKES = {"trace"}
SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def export(report: Report) -> str:
    """The file, as one JSON object; without work of a device its profiles are empty."""
    frames = Table[stacks.StackFrame]()
    profiles = [
        profile(name, found, frames)
        for name, found in (("host", stacks.host(report)), ("device", stacks.device(report)))
    ]
    return json.dumps(
        {
            "$schema": SCHEMA,
            "name": title(report.name),
            "exporter": "syncscope",
            "activeProfileIndex": 0,
            "shared": {"frames": [frame(one) for one in frames]},
            "profiles": profiles,
        },
        allow_nan=False,
    )


def profile(name: str, found: Iterable[stacks.Stack], frames: Table[stacks.StackFrame]) -> dict[str, Any]:
    """A step of the host or the device; its frames are numbered in `frames`. Times are whole ns."""
    rows = [([frames[one] for one in stack], round(ns)) for stack, ns in found]
    return {
        "type": "sampled",
        "name": f"{name}, a step",
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(ns for _, ns in rows),
        "samples": [stack for stack, _ in rows],
        "weights": [ns for _, ns in rows],
    }


def frame(one: stacks.StackFrame) -> dict[str, Any]:
    """A frame as speedscope names it."""
    where = {} if one.place is None else {"file": one.place.path, "line": one.place.line}
    return {"name": one.name, **where}
