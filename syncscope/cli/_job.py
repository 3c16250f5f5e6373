"""Recordings as the ranks of one job: how they are read, shown and held to limits."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncscope.cli import _formats, _limits, _merged, _outputs
from syncscope.cli._console import echo
from syncscope.cli._parts import Steps
from syncscope.cli._progress import Progress
from syncscope.errors import UserError
from syncscope.model.durations import ms

if TYPE_CHECKING:
    from syncscope.analysis.job import JobReport
    from syncscope.analysis.rank import Rank
    from syncscope.cli._job_tables import JobTable
    from syncscope.cli._limits import GivenLimit
    from syncscope.model.report import Report
    from syncscope.model.trace import Trace


def _no_limits() -> dict[str, float | None]:
    return dict.fromkeys(("most_syncs", "most_saving", "most_wait"))


@dataclass(frozen=True, slots=True)
class JobView:
    """How a job is shown, in full if the `whole` is asked for, and its limits: `most_of` by the names that
    `_gate_of_ranks.limits` gives them, `expect` is how many ranks there must be."""

    format_: str = "terminal"
    output: str | None = None
    whole: bool = False
    most_of: Mapping[str, float | None] = field(default_factory=_no_limits)
    expect: int | None = None


@dataclass(frozen=True, slots=True)
class KnownJob:
    """What is known of a job: its report, the ranks it is of, what became of its limits, and what of it could not be read."""

    name: str
    found: JobReport
    ranks: Sequence[Rank]
    limits: Sequence[GivenLimit]
    problems: Sequence[UserError] = ()

    @property
    def code(self) -> int:
        """The exit code, once it is said what is wrong."""
        from syncscope.cli._console import complain

        for error in self.problems:
            complain(error)
        return _limits.code(self.limits) or (2 if self.problems else 0)

    @property
    def as_object(self) -> dict[str, Any]:
        """The job as JSON values."""
        return {"schema": 1} | _as_object(self.found) | {"problems": [error.message for error in self.problems]}

    def limits_as_report(self, shown: bool) -> Report:
        """Its limits: those that do not hold as findings, or all, where a format has them `shown` apart."""
        from syncscope.cli._gate import as_findings
        from syncscope.model.report import Report

        if shown:
            return Report(name=self.name, limits=tuple(replace(limit.shown, of=self.name) for limit in self.limits))
        given = [replace(limit, at=os.path.join(self.name, limit.at) if limit.at else "") for limit in self.limits]
        at = os.path.join(self.name, self.ranks[0].name)
        return Report(name=self.name, findings=as_findings(self.found.lines, at, given))

    def problems_as_report(self, shown: bool) -> Report:
        """What of it could not be read, in the same way."""
        merged = _merged.Merged()
        for error in self.problems:
            merged.take(_merged.unread(self.name, error, shown))
        return merged.report

    @property
    def on_page(self) -> dict[str, Any]:
        """What a page shows of its ranks."""
        from syncscope.model.report import step_lengths

        numbers = [rank.number if rank.number >= 0 else position for position, rank in enumerate(self.ranks)]
        steps = []
        for number, rank in sorted(zip(numbers, self.ranks, strict=True), key=lambda pair: pair[0]):
            lengths = zip(rank.graph.steps, step_lengths(rank.graph.steps), strict=True)
            steps.append((number, [(step.index, ms(length)) for step, length in lengths]))
        return _as_object(self.found) | {"steps": steps, "timeline": _timeline(self.ranks)}


def show_job(paths: Sequence[str], most: int, view: JobView, steps: Steps = None, tables: Path | None = None) -> int:
    """Print what these traces say as one job, of each at most so many bytes, unpacked, or write it; the exit code.

    Raises:
        UserError: none of them can be used, or (`NotOneJobError`) they cannot be one job.
    """
    _outputs.spare([view.output], paths)
    return told(known_job(paths, _folder(paths) or paths[0], most, view, steps, tables), view)


def _folder(paths: Sequence[str]) -> str:
    """The folder in which all of them lie."""
    folders = {os.path.dirname(path) for path in paths}
    try:
        return os.path.commonpath(folders) if len(folders) > 1 else folders.pop()
    except ValueError:  # absolute paths beside others, or two drives
        return ""


def known_job(
    paths: Sequence[str], name: str, most: int, view: JobView, steps: Steps = None, tables: Path | None = None
) -> KnownJob:
    """The job that these traces are.

    Raises:
        UserError: none of them can be used, or (`NotOneJobError`) they cannot be one job.
    """
    from syncscope.analysis import fleet

    ranks, problems = read(paths, most, steps, tables, "ranks" if view.format_ == "terminal" else "")
    return concluded(ranks if tables is None else fleet.load(tables), name, view, problems)


def concluded(ranks: Sequence[Rank], name: str, view: JobView, problems: Sequence[UserError] = ()) -> KnownJob:
    """The job of these ranks.

    Raises:
        NotOneJobError: they cannot be one.
    """
    from syncscope.analysis.job import job
    from syncscope.cli import _gate_of_ranks

    found = job(ranks)
    limits = list(_gate_of_ranks.limits(found, ranks, view.expect, **view.most_of))
    return KnownJob(name, found, ranks, limits, problems)


def read(
    paths: Sequence[str], most: int, steps: Steps = None, tables: Path | None = None, logged: str = ""
) -> tuple[list[Rank], list[UserError]]:
    """The ranks that these traces are, or their tables are kept, and what is wrong with the others.

    Raises:
        UserError: none of them can be used.
    """
    from syncscope.analysis import fleet
    from syncscope.analysis.rank import Rank

    try:
        if tables is not None:
            tables.mkdir(parents=True, exist_ok=True)
        parts = []
        with Progress("ranks", logged=logged) as tick:
            for part in fleet.mapped(
                partial(_trace, most=most, steps=steps), paths, folder=None if tables is None else str(tables)
            ):
                parts.append(part)
                tick(len(parts), len(paths))
    except OSError as error:
        said = f"{error.filename or tables} cannot be written: {error.strerror}"
        raise UserError(said, "choose another folder with --tables") from None
    problems = [part for part in parts if isinstance(part, UserError)]
    if len(problems) == len(parts):
        raise problems[0]
    named = [(part, os.path.relpath(path, _folder(paths) or ".")) for part, path in zip(parts, paths, strict=True)]
    return [replace(part, name=name) for part, name in named if isinstance(part, Rank)], problems


def _trace(path: str, most: int, steps: Steps) -> Trace:
    """A recording, or these of its steps."""
    from syncscope import kineto
    from syncscope.analysis.window import only_steps

    trace = kineto.read(path, most)
    return trace if steps is None else only_steps(trace, *steps)


def told(known: KnownJob, view: JobView) -> int:
    """Print a job, or write it; the exit code."""
    if view.format_ == "html" and view.output is not None:
        from syncscope.exporters import html

        found = known.found
        written_page(html.job_page(known.name, found.verdict, found.notes, known.on_page), view.output)
    elif view.format_ == "json":
        _formats.written(json.dumps(known.as_object, indent=2), view.output)
    elif view.format_ == "markdown":
        from syncscope.cli._job_markdown import markdown

        _formats.written(markdown(known.found, known.name, known.limits, view.whole), view.output)
    elif view.format_ != "terminal":
        _merged.written([known.limits_as_report, known.problems_as_report], view.format_, view.output)
    else:
        show(known.found, view.whole)
    return known.code


def written_page(shown: dict[str, Any], output: str) -> None:
    """Write a page, and say so."""
    from syncscope import files
    from syncscope.exporters import html

    files.write(output, html.page(shown, "").encode())
    echo(f"wrote {output}", err=True)


def _as_object(found: JobReport) -> dict[str, Any]:
    """Everything that is known of a job, with a collective's key as one string."""
    told = asdict(found)
    return told | {"meets": [meet | {"key": str(meet["key"])} for meet in told["meets"]]}


def _timeline(ranks: Sequence[Rank]) -> dict[str, Any]:
    """What the page draws of the ranks, ms of the job's clock."""
    from syncscope.analysis.job_timeline import job_timeline

    found = job_timeline(ranks)
    lanes = [
        {
            "number": lane.number,
            "steps": {step: [ms(at) for at in when] for step, when in lane.steps.items()},
            "met": [[one.step, *map(ms, (one.start, one.waits_until, one.end)), one.meet] for one in lane.collectives],
        }
        for lane in found.lanes
    ]
    return {"lanes": lanes, "late": found.late, "steps": found.steps, "ranks": found.ranks}


def show(found: JobReport, whole: bool = False) -> None:
    """Print it for people."""
    from syncscope.cli._console import console as made
    from syncscope.cli._job_tables import foot, head, tables

    console = made()
    console.print("\n".join(head(found)) + "\n")
    for told in tables(found, whole):
        show_table(told)
        if told.what:
            console.print(f"and {told.more:,} more {told.what}\n" if told.more else "", style="dim")
    console.print(f"\n{found.verdict}")
    for note in found.notes:
        console.print(f"note  {note}", style="dim")
    console.print(f"\n{foot(found)}", style="dim")


def show_table(told: JobTable) -> None:
    """Print a table."""
    from syncscope.cli._console import console
    from syncscope.cli._fitting import fitted
    from syncscope.cli._job_tables import SPARE, Words

    out = console()
    spare = [[told.columns.index(name)] for name in SPARE if name in told.columns]
    table, gone = fitted(told.columns, told.rows, [isinstance(name, Words) for name in told.columns], out.width, spare)
    out.print(table)
    if gone:
        out.print(f"no room for {', '.join(gone)}: a wider terminal has them", style="dim")
