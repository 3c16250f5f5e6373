"""Several jobs: a row for each, at the terminal, for programs, and as a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from syncscope.cli import _formats, _merged, _outputs
from syncscope.cli._console import complain, console, echo
from syncscope.cli._job import JobView, known_job, show_table, told, written_page
from syncscope.cli._job_tables import JobTable, Words, filled, job_name
from syncscope.cli._overview import WHOLE
from syncscope.errors import UserError
from syncscope.exporters import _figures as figures
from syncscope.model.durations import in_ms
from syncscope.model.words import visible

if TYPE_CHECKING:
    from syncscope.cli._job import KnownJob
    from syncscope.cli._parts import Steps

COLUMNS = (Words("job"), "ranks", "step ms", "saves", "others wait", "for rank", Words("mostly by"), Words("most at"))
SAID = (
    "saves: what a step of the job is shorter if no rank syncs; others wait: the part of a step that the other ranks wait "
    "for the one that they wait most for, a late start of its recording aside; -: not known, as `syncscope ranks` of that job "
    "says"
)


def show_jobs(
    jobs: Mapping[str, list[str]], most: int, view: JobView, steps: Steps = None
) -> tuple[list[int], dict[str, UserError]]:
    """Print each of these jobs, by its folder, and of several a table, or write them; their exit codes, and which are none.

    Of more than three there is the table alone, unless the whole is asked for.
    """
    from syncscope.analysis.one_job import NotOneJobError

    _outputs.spare([view.output], [path for own in jobs.values() for path in own])
    in_short = len(jobs) > WHOLE and not view.whole
    codes: list[int] = []
    none: dict[str, UserError] = {}
    kept = _Kept(view)
    for where, own in jobs.items():
        try:
            known = known_job(own, where, most, view, steps)
        except NotOneJobError as error:
            none[where] = error
            continue
        except UserError as error:
            complain(error)
            codes.append(2)
            continue
        if len(jobs) > 1:
            known = replace(known, limits=[replace(one, of=f"{visible(where)}: ") for one in known.limits])
            kept.take(known)
        if len(jobs) > 1 and (in_short or view.format_ != "terminal"):
            codes.append(known.code)
            continue
        if view.format_ == "terminal":
            echo(f"{len(own)} ranks of one job; of one alone: syncscope report {visible(own[0])}\n")
        codes.append(told(known, view))
        if len(jobs) > 1:
            echo("")
    kept.end(in_short)
    return codes, none


class _Kept:
    """What is shown of several jobs once all are known; their events are not kept."""

    def __init__(self, view: JobView) -> None:
        self._view = view
        self._rows: list[tuple[str, ...]] = []
        self._parts: list[Any] = []

    def take(self, known: KnownJob) -> None:
        """One of them."""
        self._rows.append(_row(known))
        if self._view.format_ == "json":
            self._parts.append({"name": known.name} | known.as_object)
        elif self._view.format_ == "html":
            self._parts.append((known.name, known.found.verdict, known.found.notes, known.on_page))
        elif self._view.format_ == "markdown":
            from syncscope.cli._job_markdown import markdown

            self._parts.append(markdown(known.found, known.name, known.limits, self._view.whole))
        elif self._view.format_ != "terminal":
            self._parts += [known.limits_as_report, known.problems_as_report]

    def end(self, in_short: bool) -> None:
        """There are no more."""
        view = self._view
        if not self._rows:
            return
        table = JobTable(*filled(COLUMNS, self._rows), 0, "jobs")
        if view.format_ == "html" and view.output is not None:
            from syncscope.exporters import html

            heads = [(str(name), isinstance(name, Words)) for name in table.columns]
            written_page(html.jobs_page(heads, table.rows, SAID, self._parts), view.output)
        elif view.format_ == "json":
            _formats.written(json.dumps({"schema": 1, "jobs": self._parts}, indent=2), view.output)
        elif view.format_ == "markdown":
            from syncscope.cli._job_markdown import markdown_table

            _formats.written("\n\n".join([markdown_table(table), *self._parts]), view.output)
        elif view.format_ != "terminal":
            _merged.written(self._parts, view.format_, view.output)
        else:
            show_table(table)
            console().print(f"\n{SAID}", style="dim")
            if in_short:
                one = visible(self._rows[0][0])
                console().print(f"one of them: syncscope ranks {one}; each of them: --all", style="dim")


def _row(known: KnownJob) -> tuple[str, ...]:
    from syncscope.cli._gate_of_ranks import waited_for

    found = known.found
    waited, of_a_step = waited_for(found, known.ranks)
    saved = figures.percent(found.saving / found.step if found.saving is not None and found.step else None)
    head = visible(known.name), found.here, in_ms(found.step, ""), saved
    last = max(waited, key=lambda number: waited[number].total(), default=None)
    if last is None or not of_a_step or not waited[last].total():
        return *head, "-" if not found.meets else figures.percent(0.0), "", "", ""
    own = next(rank for rank in found.ranks if rank.number == last)
    at = next((job_name(line) for line in own.lines), "")
    cause = waited[last].most_common(1)[0][0]
    return *head, figures.percent(waited[last].total() / of_a_step), str(last), str(cause), at
