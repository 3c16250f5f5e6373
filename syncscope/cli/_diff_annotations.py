"""Two recordings side by side as annotations of a pull request on GitHub: the lines that wait more often, and broken limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from syncscope.cli._console import echo
from syncscope.cli._diff_words import in_place, unlike
from syncscope.cli._gate import LIMIT, in_no_file
from syncscope.cli._places import relative
from syncscope.exporters import github
from syncscope.model.finding import Finding
from syncscope.model.source import Place, Span

if TYPE_CHECKING:
    from syncscope.analysis.comparison import Comparison
    from syncscope.cli._limits import GivenLimit

NEW = "new-sync"


def commands(found: Comparison, after: str, limits: Sequence[GivenLimit]) -> str:
    """A command a line: a warning where a line waits more often than before, an error for each limit that does not hold."""
    findings = [*_findings(found, after, limits)]
    if said := in_no_file(findings):
        echo(said, err=True)
    return "\n".join(map(github.command, findings))


def _findings(found: Comparison, after: str, limits: Sequence[GivenLimit]) -> Iterator[Finding]:
    recording = Place(after, 1)
    if why := unlike(found):
        yield _finding(LIMIT, recording, f"nothing is said of what changed: {why}", "error")
        return
    for line, more in found.more.lines:
        if line.place is not None:
            yield _finding(NEW, line.place, f"{line.op}: {more:.3g} per step more than before", "warning")
    for pair in found.more.in_place:
        if (place := pair[1].caller or pair[1].place) is not None:
            yield _finding(NEW, place, in_place(pair), "note")
    first = next((line.place for line, _ in found.more.lines if line.place is not None), recording)
    for limit in limits:
        if limit.held is not True:
            yield _finding(LIMIT, first if limit.broken else recording, limit.words, "error")


def _finding(rule: str, place: Place, message: str, severity: str) -> Finding:
    at = Place(relative(place.path), place.line)
    return Finding(rule, at, 1, at.line, 1, Span(0, 0), message, 3, severity=severity)
