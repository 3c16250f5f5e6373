"""What several recordings and jobs have found, as one: a format of findings has all of it in one document."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from syncscope import discover, exporters
from syncscope.cli import _formats
from syncscope.cli._gate import LIMIT
from syncscope.errors import UserError
from syncscope.model.finding import Finding
from syncscope.model.report import Limit, Report
from syncscope.model.source import Place, Span


class Merged:
    """Takes the reports one after another; their events are not kept. What is found in a file is told once, however many
    recordings ran it, and each limit of each."""

    def __init__(self) -> None:
        self._findings: dict[object, Finding] = {}
        self._all = Report()

    def take(self, report: Report) -> None:
        """One of them."""
        for found in report.findings:
            self._findings.setdefault(
                (found.rule, found.place, found.column, found.message * (found.rule == LIMIT)), found
            )
        known = self._all
        self._all = Report(
            limits=(*known.limits, *report.limits),
            sources={**known.sources, **report.sources},
            hazards=known.hazards or report.hazards,
        )
        if not self._all.sources:  # of which a format says that nothing was linted
            self._all = replace(self._all, trace=report.trace or known.trace)

    @property
    def report(self) -> Report:
        """All of them, so far."""
        return replace(self._all, findings=tuple(self._findings.values()))


def unread(path: str, error: UserError, shown: bool) -> Report:
    """That a recording cannot be read: of a format that shows limits apart as one of these that cannot be judged, else as a
    finding."""
    said = error.message if error.tells_of(path) else f"{path}: {error.message}"
    words = f"{said}; {error.hint}" if error.hint else said
    if shown:
        return Report(name=path, limits=(Limit("recording", None, words, path),))
    return Report(
        name=path, findings=(Finding(LIMIT, Place(path, 1), 1, 1, 1, Span(0, 0), words, 3, severity="error"),)
    )


def written(parts: Iterable[Callable[[bool], Report]], name: str, output: str | None) -> None:
    """Print these reports as one, or write them, in the format of findings that is called so: it says whether it shows the
    limits of each apart."""
    exporter, merged = discover.load(exporters, name), Merged()
    for part in parts:
        merged.take(part(getattr(exporter, "LIMITS", False)))
    commands = getattr(exporter, "COMMANDS", False)
    _formats.written(exporter.export(merged.report).rstrip("\n"), output, commands=commands)
