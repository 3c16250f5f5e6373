"""Two recordings side by side, for programs and as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syncscope.cli._console import echo
from syncscope.cli._diff_words import sentence, unlike
from syncscope.cli._places import relative
from syncscope.model.durations import ms

if TYPE_CHECKING:
    from syncscope.analysis.comparison import Comparison
    from syncscope.analysis.promised import Promised
    from syncscope.analysis.work_changes import WorkChange
    from syncscope.model.report import Line, Report


def as_object(found: Comparison) -> dict[str, Any]:
    """The comparison as JSON values, as docs/json.md says; times in ms."""
    why_not = unlike(found) or None
    lines = {
        "gone": [_as_object(line) for line in found.gone],
        "new": [_as_object(line) for line in found.new],
        "changed": [{"before": _as_object(c.before), "after": _as_object(c.after)} for c in found.changed],
        "same": [_as_object(c.after) for c in found.same],
    }
    return {
        "schema": 1,
        "before": _totals(found.before),
        "after": _totals(found.after),
        "predicted_ms": ms(found.predicted),
        "prediction_error": found.error,
        "spread_ms": [ms(t) for t in found.spread] if found.spread else None,
        "change": found.change and found.change[1],
        "change_range": found.change and [found.change[0], found.change[2]],
        "within_noise": found.within_noise,
        "every_step": found.every_step or None,
        "not_comparable": found.incomparable or None,
        "host_pace": found.pace,
        "drift": found.drift,
        "prediction_came_true": found.came_true,
        "promised": None if why_not or found.promised is None else _promised(found.promised),
        "why_not": why_not,
        "predicted_range_ms": [ms(t) for t in found.predicted_range] if found.predicted_range else None,
        "device_work_ms": [ms(t) for t in _known(found, found.work)],
        "device_work_pieces": _known(found, found.pieces),
        "launches": _known(found, found.calls),
        "kernels": None if why_not else [_work(each) for each in found.kernels],
        **(dict.fromkeys(lines) if why_not else lines),
    }


def _promised(known: Promised) -> dict[str, Any]:
    what = known.what
    return {
        "what": what.name,
        "saving_ms": ms(what.saving),
        "saving_range_ms": [ms(what.low), ms(what.high)],
        "idle_ms": [ms(ns) for ns in known.idle],
        "came_ms": ms(known.came),
        "came_true": known.true,
    }


def _work(each: WorkChange) -> dict[str, Any]:
    place = each.places[1] or each.places[0]
    return {
        "became": each.word,
        "name": each.name,
        "path": relative(place.path) if place else None,
        "line": place.line if place else None,
        "count": list(each.counts),
        "ms": [ms(ns) for ns in each.times],
    }


def _known(found: Comparison, pair: tuple[float, float]) -> list[float | None]:
    """A figure of both, None in place of that of a recording which cannot be judged."""
    return [None if one.refused else value for one, value in zip((found.before, found.after), pair, strict=True)]


def keep(found: Comparison, before: str, after: str, most: int, output: str) -> None:
    """Write the page of the second recording, with what became of the first."""
    from syncscope import api, files
    from syncscope.exporters import html

    report = api.with_work(api.report(after, most=most))
    shown, events = html.parts(report, comparison=on_page(found, before, after))
    files.write(output, html.page(shown, events).encode())
    echo(f"wrote {output}", err=True)


def on_page(found: Comparison, before: str, after: str) -> dict[str, Any]:
    """What a page shows of two recordings side by side."""
    from syncscope.analysis.steps import counted_time
    from syncscope.exporters._called import title

    def steps(report: Report) -> list[float | None]:
        return [ms(length) for length in counted_time(report.steps)[-1]] if report.steps else []

    names = {"before_name": title(before), "after_name": title(after), "words": sentence(found)}
    lengths = {"before_steps_ms": steps(found.before), "after_steps_ms": steps(found.after)}
    return as_object(found) | names | lengths


def _totals(report: Report) -> dict[str, Any]:
    return {
        "steps": len(report.steps),
        "step_ms": ms(report.step),
        "device_busy": report.device_busy,
        "reads_per_step": None if report.refused else report.syncs,
        "blocked_ms": None if report.refused else ms(sum(line.blocked for line in report.lines)),
        "total_saving_ms": ms(report.saving),
        "fidelity": report.fidelity,
    }


def _as_object(line: Line | None) -> dict[str, Any] | None:
    if line is None:
        return None
    return {
        "path": relative(line.place.path) if line.place else None,
        "line": line.place.line if line.place else None,
        "op": line.op,
        "count": line.count,
        "blocked_ms": ms(line.blocked),
    }
