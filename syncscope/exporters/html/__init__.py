"""One self-contained page: summary, steps, lines with their rewrites, and a timeline to zoom in; no outside requests."""

from __future__ import annotations

import html
import json
from importlib import resources
from typing import Any

from syncscope.exporters import json as as_json
from syncscope.exporters._source_frame import line_of
from syncscope.exporters.html._timeline import timeline
from syncscope.model.report import Report

SUFFIX = ".html"
TAKES = {"trace"}


def export(report: Report) -> str:
    """The page."""
    values: dict[str, Any] = as_json.as_object(report)
    for entry in values["lines"]:
        source = None if entry["function"] else report.sources.get(entry["path"] or "")
        entry["code"] = line_of(source, entry["line"] or 0)
    values["timeline"] = timeline(report)
    files = resources.files(__package__)
    page = files.joinpath("page.html").read_text(encoding="utf-8")
    for mark, text in (
        ("STYLE", files.joinpath("page.css").read_text(encoding="utf-8")),
        ("SCRIPT", files.joinpath("page.js").read_text(encoding="utf-8")),
        ("TITLE", html.escape(report.name or "syncscope")),
        ("VALUES", json.dumps(values, allow_nan=False).replace("<", "\\u003c")),  # or `</script>` would end it
    ):
        page = page.replace(f"/*{mark}*/", text)
    return page
