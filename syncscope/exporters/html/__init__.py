"""One self-contained page: the answer, where a step goes, lines, steps, a timeline, kernels; no outside requests.

What it shows is `_model.model`, what its timeline draws `_timeline.timeline`. How it looks is in `front/`: ES modules, a style
and a template, which TensorBoard's tab serves as they are and which are put into one file here.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any
from urllib.parse import quote

from syncscope.exporters import stem
from syncscope.exporters.html._model import model
from syncscope.exporters.html._timeline import MOST_EVENTS, timeline
from syncscope.model.report import Report
from syncscope.model.words import all_visible

SUFFIX = ".html"
TAKES = {"trace"}
WORK = True
ENTRY = "file.js"
IN_A_CELL = 200_000  # events: a notebook keeps what its cells show
IMPORT = re.compile(r'^import \{(?P<names>[^}]+)\} from "\./(?P<file>\w+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?P<what>(?:async )?(?:function|const|class)) (?P<name>\w+)", re.MULTILINE)


def export(report: Report) -> str:
    """The page."""
    return page(*parts(report))


def parts(report: Report, most: int = MOST_EVENTS, **more: Any) -> tuple[dict[str, Any], str]:
    """What the page shows, as JSON values with the facts of the timeline, and its events (at most so many) as text."""
    found = timeline(report, most)
    facts, events = found or (None, "")
    return {**model(report), "timeline": facts, **more}, events


def job_page(name: str, verdict: str, notes: Sequence[str], job: Mapping[str, Any]) -> dict[str, Any]:
    """What the page of a job of many ranks shows: `job` is its report as JSON values, with the `steps` of each rank."""
    return _without_events(stem(name), name, notes, verdict=verdict, ranks=dict(job))


def jobs_page(
    columns: Sequence[tuple[str, bool]],
    rows: Sequence[Sequence[str]],
    lead: str,
    jobs: Sequence[tuple[str, str, Sequence[str], Mapping[str, Any]]],
) -> dict[str, Any]:
    """What the page of several jobs shows: a row for each, below heads that say whether words stand there, and then what the
    page of one would show, by `job_page`."""
    table = _table("Jobs", lead, columns, rows)
    each = [
        {"title": name, "verdict": verdict, "notes": list(notes), "ranks": dict(job)}
        for name, verdict, notes, job in jobs
    ]
    return _without_events(f"{len(jobs)} jobs", "", (), table=table, jobs=each)


def index_page(
    title: str,
    lead: str,
    columns: Sequence[tuple[str, bool]],
    rows: Sequence[Sequence[str]],
    links: Sequence[str],
    notes: Sequence[str],
) -> dict[str, Any]:
    """What the page shows that leads to others: a row for each, whose first cell is a link to the file beside it."""
    table = _table("Recordings", lead, columns, rows) | {"links": [quote(name) for name in links]}
    return _without_events(title, "", notes, table=table)


def compared_jobs_page(
    title: str,
    lead: str,
    columns: Sequence[tuple[str, bool]],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str],
    ranks: Sequence[tuple[str, Mapping[str, Any]]],
) -> dict[str, Any]:
    """What the page of two jobs side by side shows: a row for each rank, and of some, by their titles, the whole comparison."""
    table = _table("Rank by rank", lead, columns, rows)
    compared = [{"title": name, "comparison": dict(found)} for name, found in ranks]
    return _without_events(title, "", notes, table=table, compared=compared)


def _table(title: str, lead: str, columns: Sequence[tuple[str, bool]], rows: Sequence[Sequence[str]]) -> dict[str, Any]:
    heads = [{"name": name, "left": words} for name, words in columns]
    return {"title": title, "lead": lead, "columns": heads, "rows": [list(row) for row in rows]}


def _without_events(title: str, name: str, notes: Sequence[str], **parts: Any) -> dict[str, Any]:
    return all_visible({"name": name, "notes": list(notes), "page": {"title": title, "recorded": ""}, **parts})


def page(shown: dict[str, Any], events: str) -> str:
    """The page as one file. Its policy lets run and apply nothing but what stands in it by then."""
    script, style = f"\n{bundle(ENTRY)}", f"\n{front('page.css')}"
    values = {
        "TITLE": html.escape(shown["page"]["title"]),
        "VERDICT": html.escape(shown.get("verdict") or ""),
        "STYLE": style,
        "SCRIPT": script,
        "STYLE_HASH": _hash(style),
        "SCRIPT_HASH": _hash(script),
        "MODEL": json.dumps(shown, allow_nan=False, separators=(",", ":")).replace(
            "<", "\\u003c"
        ),  # `</script>` would end it
        "EVENTS": events,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: values[mark[1]], front("page.html"))


def notebook(report: Report, height: int = 760) -> str:
    """The page in a frame of its own, for a cell of a notebook: neither sees the other's names and styles."""
    whole = html.escape(page(*parts(report, IN_A_CELL)), quote=True)
    allowed = "allow-scripts allow-popups allow-popups-to-escape-sandbox allow-modals"
    return (
        f'<iframe srcdoc="{whole}" sandbox="{allowed}" title="syncscope report" '
        f'style="width: 100%; height: {height}px; border: 1px solid #8884; border-radius: 6px"></iframe>'
    )


def front(name: str) -> str:
    """A file of the front end."""
    return resources.files(__package__).joinpath("front", name).read_text(encoding="utf-8")


def bundle(entry: str) -> str:
    """A module and all that it imports as one script: each becomes a function that gives what the module exports."""
    made: dict[str, str] = {}

    def add(file: str) -> None:
        if file in made:
            return
        text = front(file)
        made[file] = ""  # in the works: a circle ends here, as it does in a browser
        for found in IMPORT.finditer(text):
            add(found["file"])
        del made[file]
        names = ", ".join(found["name"] for found in EXPORT.finditer(text))
        body = EXPORT.sub(
            r"\g<what> \g<name>", IMPORT.sub(lambda m: f"const {{{m['names']}}} = {_name(m['file'])};\n", text)
        )
        made[file] = f"const {_name(file)} = (() => {{\n{body}return {{{names}}};\n}})();\n"

    add(entry)
    return "".join(made.values())


def _name(file: str) -> str:
    return f"module_{file.removesuffix('.js')}"


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
