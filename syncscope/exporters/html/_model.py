"""What the page shows, as JSON: the report as `--format json` has it, and beside it its words, its source and its title."""

from __future__ import annotations

import os
import time
from typing import Any

from syncscope.exporters import _figures as figures
from syncscope.exporters import json as as_json
from syncscope.exporters import terminal
from syncscope.exporters._called import rank_of, title
from syncscope.exporters._source_frame import line_of, shown
from syncscope.model.durations import ms
from syncscope.model.memory import MemoryUse
from syncscope.model.report import Report

AROUND = 7  # lines of source shown before and after one that waits
MOST_USED = 200  # lines that take most of a step whose source is shown
LONGEST = 400  # characters shown of a line of source
EARLIEST = 10**18  # ns: in 2001; a clock that says less counts from the start of its machine


def model(report: Report) -> dict[str, Any]:
    """The JSON report with `page`: what only the page needs."""
    return {
        **as_json.as_object(report),
        "page": {
            "title": title(report.name, rank_of(report.trace) if report.trace else None),
            "recorded": " · ".join(
                filter(None, (when(report), terminal.recorded(report.trace) if report.trace else ""))
            ),
            "summary": [[label, text.plain] for label, text in terminal.summary(report, terminal.WIDTH)],
            "lead": report.lead,
            "further": further(report),
            "counted": report.steady,
            "replay_holds": report.replay_holds,
            "foretold": [figures.foretold(report, one) for one in report.what_if],
            "unseen": len(figures.unseen(report)),
            "unseen_elsewhere": figures.unseen_elsewhere(report),
            "source": excerpts(report),
            "by_line": by_line(report),
            "memory": [memory(one, report) for one in report.memory],
            "folder": os.getcwd(),
        },
    }


def further(report: Report) -> list[str]:
    """What is said below the answer: what narrows it, what figures do not tell, and whose recording it is."""
    narrowed = terminal.narrowed(report, not report.further) if report.lines else ""
    job = f"This is {report.of_a_job}." if report.of_a_job else ""
    return [said for said in (f"{narrowed[:1].upper()}{narrowed[1:]}." * bool(narrowed), report.further, job) if said]


def when(report: Report) -> str:
    """The day and the minute of the recording in Universal Time; "" where it does not say."""
    origin = int(report.trace.meta.get("origin_ns", 0)) if report.trace is not None else 0
    if not EARLIEST < origin < 1 << 62:
        return ""
    return time.strftime("%d %B %Y, %H:%M UTC", time.gmtime(origin / 1e9))


def memory(found: MemoryUse, report: Report) -> dict[str, Any]:
    """The curve of one device, ns and bytes, and the source of the lines that hold its memory."""
    lines = {held.name: held.place for held in found.held if held.place is not None and not held.function}
    code = {name: line_of(report.sources.get(place.path), place.line) for name, place in lines.items()}
    times, held = found.curve.T.tolist()
    return {"time": times, "bytes": held, "code": {name: text[:LONGEST] for name, text in code.items() if text}}


def by_line(report: Report) -> dict[str, Any] | None:
    """What only the page shows of each line: the parts of the host's time, bytes, kernels; and how much has a line."""
    found = report.by_line
    if found is None:
        return None
    parts = [
        {
            "driver_ms": ms(one.driver),
            "between_ms": ms(one.between),
            "waiting_ms": ms(one.waiting),
            "loading_ms": ms(one.loading),
            "bytes": round(one.bytes),
            "since": as_json.place(one.since),
            "runs": one.runs,
            "kernels": [[name, ms(ns)] for name, ns in one.kernels],
        }
        for one in found.lines
    ]
    known = {"host_known": found.host_known, "device_known": found.device_known}
    return {"step_ms": ms(found.step), "host_ms": ms(found.host), **known, "parts": parts}


def excerpts(report: Report) -> dict[str, list[tuple[int, list[str]]]]:
    """By path, the lines of source around those that wait or take much of a step.

    Each part is `[number of the first, the lines]`, one after the other.
    """
    wanted: dict[str, set[int]] = {}
    used = [one.place for one in report.by_line.lines] if report.by_line else []
    for place in [*(line.place for line in report.lines), *used[:MOST_USED]]:
        if place and place.path in report.sources:
            wanted.setdefault(place.path, set()).update(range(place.line - AROUND, place.line + AROUND + 1))
    found = {}
    for path, numbers in wanted.items():
        text = report.sources[path].decode("utf-8", "replace").split("\n")
        parts: list[tuple[int, list[str]]] = []
        for number in sorted(n for n in numbers if 0 < n <= len(text)):
            if not parts or parts[-1][0] + len(parts[-1][1]) != number:
                parts.append((number, []))
            parts[-1][1].append(shown(text[number - 1].rstrip("\r"))[:LONGEST])
        found[path] = parts
    return found
