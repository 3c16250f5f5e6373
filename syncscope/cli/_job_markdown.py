"""A job of several ranks as Markdown: a comment of a pull request, or the summary of a job on GitHub."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from syncscope.cli._job_tables import JobTable, Words, foot, head, tables
from syncscope.cli._limits import GivenLimit
from syncscope.cli._markdown import limit
from syncscope.exporters.markdown import code, plain

if TYPE_CHECKING:
    from syncscope.analysis.job import JobReport


def markdown(found: JobReport, name: str, limits: Sequence[GivenLimit], whole: bool) -> str:
    """Whether the limits hold, the verdict, and the tables that the terminal has."""
    return "\n\n".join(_parts(found, name, limits, whole))


def _parts(found: JobReport, name: str, limits: Sequence[GivenLimit], whole: bool) -> Iterator[str]:
    yield f"### syncscope: {code(name)}"
    if limits:
        yield "\n".join(map(limit, limits))
    yield plain("; ".join(head(found)) + ".")
    yield plain(found.verdict)
    yield from map(markdown_table, tables(found, whole))
    yield plain(foot(found))
    if found.notes:
        yield "\n".join(f"- {plain(note)}" for note in found.notes)


def markdown_table(told: JobTable) -> str:
    """A table as Markdown."""
    rows = [
        f"| {' | '.join(map(plain, told.columns))} |",
        f"| {' | '.join('---' if isinstance(name, Words) else '---:' for name in told.columns)} |",
        *(f"| {' | '.join(map(plain, row))} |" for row in told.rows),
    ]
    if told.more:
        rows.append(f"\nand {told.more:,} more {told.what}")
    return "\n".join(rows)
