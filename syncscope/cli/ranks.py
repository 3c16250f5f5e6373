"""syncscope ranks: the traces of all ranks as one job."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from syncscope.cli import _formats, _limits, _outputs
from syncscope.cli._console import echo
from syncscope.cli._progress import Progress
from syncscope.cli._traces import max_size, no_trace, traces
from syncscope.errors import UserError
from syncscope.model.durations import in_ms, ms

if TYPE_CHECKING:
    from syncscope.analysis.job import JobReport
    from syncscope.analysis.rank import Rank

FORMATS = ("terminal", "json", "html")
NO_LIMITS: Mapping[str, float | None] = dict.fromkeys(("most_syncs", "most_saving", "most_wait"))
SHOWN = 12  # ranks and collectives in a table


@click.command(short_help="Many ranks as one job: who waits for whom.")
@click.argument("files", nargs=-1, required=True, metavar="FOLDER|FILE...")
@click.option(
    "--tables", type=click.Path(path_type=Path), metavar="DIR", help="Keep Parquet tables of every rank there."
)
@click.option(
    "--expect",
    type=click.IntRange(min=1),
    metavar="N",
    help="Exit 2 when fewer than N ranks could be read. Default, with a limit: as many as the recordings say the job has.",
)
@max_size
@_formats.options(
    FORMATS, "Write there: a page with heat maps of steps by ranks, and who waited for whom (.html), or JSON (.json)."
)
@_limits.number("--max-syncs-per-step", "most_syncs", when="a step of any rank has more syncs than that")
@_limits.share("--max-saving", "most_saving", when="all syncs cost the job more of a step than that, in percent: 2%")
@_limits.share(
    "--max-wait-for-rank",
    "most_wait",
    when="the other ranks wait more of a step than that, on average, because one comes last, in percent: 5%",
)
def command(
    files: tuple[str, ...],
    tables: Path | None,
    expect: int | None,
    most: int,
    format_: str | None,
    output: str | None,
    **most_of: float | None,
) -> int:
    """Who waits for whom in a job, and what a line costs all of it.

    FOLDER holds one trace for each rank, or the tables that --tables made; the traces may be named one by one. A rank that
    waits for another one in a collective gains nothing by not waiting for its device: what a line saves here is what the job
    gains. Recordings that cannot be of one job are refused.

    \b
    syncscope ranks traces/                       a table for people
    syncscope ranks traces/ -o job.html           a page, with heat maps of steps by ranks
    syncscope ranks traces/ --tables tables/      and keep the tables: SQL by DuckDB, or again by `syncscope ranks tables/`
    syncscope ranks traces/ --max-saving 2% --max-wait-for-rank 5%    a gate for CI: exits 1

    Exit status: 0 all well, 1 a limit is broken, else 2 where a file could not be read, they are not of one job, or a
    limit not be judged, as where a rank of the job is missing.
    """
    format_ = _formats.plain(format_, output, FORMATS)
    if len(files) == 1 and os.path.isdir(os.path.join(files[0], "graph")):
        from syncscope.analysis import fleet

        _outputs.spare([output])
        return _told(fleet.load(Path(files[0])), [], format_, output, files[0], most_of=most_of, expect=expect)
    missing = next((name for name in files if not os.path.exists(name) and "://" not in name), None)
    if missing is not None:
        raise UserError(f"there is no {missing!r}", "name the folder that holds one trace for each rank")
    paths = traces(files)
    if empty := next((path for path in paths if os.path.isdir(path)), None):
        raise no_trace(empty, "traces end in .json or .json.gz, one for each rank")
    return show_job(paths, most, tables, format_, output, most_of=most_of, expect=expect)


def show_job(
    paths: Sequence[str],
    most: int,
    tables: Path | None = None,
    format_: str = "terminal",
    output: str | None = None,
    heading: str = "",
    most_of: Mapping[str, float | None] = NO_LIMITS,
    expect: int | None = None,
) -> int:
    """Print what these traces say as one job, of each at most so many bytes, unpacked, or write it; the exit code.

    `most_of` are limits by the names that `_gate_of_ranks.limits` gives them, `expect` is how many ranks there must be.

    Raises:
        UserError: none of them can be used, or (`NotOneJobError`) they cannot be one job.
    """
    from syncscope import kineto
    from syncscope.analysis import fleet
    from syncscope.analysis.rank import Rank

    _outputs.spare([output], paths)
    try:
        if tables is not None:
            tables.mkdir(parents=True, exist_ok=True)
        parts = []
        with Progress("ranks", logged="ranks" if format_ == "terminal" else "") as tick:
            for part in fleet.mapped(
                partial(kineto.read, most=most), paths, folder=None if tables is None else str(tables)
            ):
                parts.append(part)
                tick(len(parts), len(paths))
    except OSError as error:
        said = f"{error.filename or tables} cannot be written: {error.strerror}"
        raise UserError(said, "choose another folder with --tables") from None
    problems = [part for part in parts if isinstance(part, UserError)]
    ranks = [part for part in parts if isinstance(part, Rank)]
    if len(problems) == len(parts):
        raise problems[0]
    name = os.path.dirname(paths[0]) or paths[0]
    return _told(
        ranks if tables is None else fleet.load(tables), problems, format_, output, name, heading, most_of, expect
    )


def _told(
    ranks: Sequence[Rank],
    problems: Sequence[UserError],
    format_: str,
    output: str | None,
    name: str,
    heading: str = "",
    most_of: Mapping[str, float | None] = NO_LIMITS,
    expect: int | None = None,
) -> int:
    from syncscope.analysis.job import job
    from syncscope.cli import _gate_of_ranks
    from syncscope.cli._console import complain

    found = job(ranks)
    if format_ == "html" and output is not None:
        keep(found, ranks, name, output)
    elif format_ == "json":
        told = {"schema": 1} | asdict(found) | {"problems": [error.message for error in problems]}
        _formats.written(json.dumps(told, indent=2), output)
    else:
        if heading:
            echo(heading)
        show(found)
    for error in problems:
        complain(error)
    return _limits.code(_gate_of_ranks.limits(found, ranks, expect, **most_of)) or (2 if problems else 0)


def keep(found: JobReport, ranks: Sequence[Rank], name: str, output: str) -> None:
    """Write the page of a job."""
    from syncscope import files
    from syncscope.exporters import html
    from syncscope.model.report import step_lengths

    numbers = [rank.number if rank.number >= 0 else position for position, rank in enumerate(ranks)]
    steps = []
    for number, rank in sorted(zip(numbers, ranks, strict=True), key=lambda pair: pair[0]):
        lengths = zip(rank.graph.steps, step_lengths(rank.graph.steps), strict=True)
        steps.append((number, [(step.index, ms(length)) for step, length in lengths]))
    shown = html.job_page(name, found.verdict, found.notes, asdict(found) | {"steps": steps})
    files.write(output, html.page(shown, "").encode())
    echo(f"wrote {output}", err=True)


def show(found: JobReport) -> None:
    """Print it for people."""
    from syncscope.cli._console import console as made
    from syncscope.cli._places import here

    console = made()
    counted = ", ".join(
        f"{len(told)} {word if len(told) == 1 else word + 's'}"
        for told, word in ((found.ranks, "rank"), (found.meets, "collective"))
    )
    console.print(f"{counted}, {'a step' if found.marked else 'the whole recording'} of {in_ms(found.step)}")
    console.print(f"the joint replay ends within {max(found.fidelity, 1e-4):.2%} of what was measured\n")
    slow = sorted(found.ranks, key=lambda rank: -rank.imposed)[:SHOWN]
    columns = (
        "rank",
        "blocked",
        "of it for others",
        "comes last",
        "others wait, in all",
        Words("mostly by"),
        "saved if only it never syncs",
    )
    rows = [
        (
            str(r.number),
            in_ms(r.blocked, ""),
            in_ms(r.symptom, ""),
            f"{r.late} {'time' if r.late == 1 else 'times'}" if r.late else "",
            in_ms(r.imposed, "") if r.late else "",
            r.cause or "",
            "" if r.saved_alone is None else in_ms(r.saved_alone, ""),
        )
        for r in slow
    ]
    console.print(_table(columns, rows))
    _rest(console, len(found.ranks), "ranks")
    longer = [(rank, each) for rank in slow for each in rank.operators]
    if longer:
        told = [
            (str(rank.number), each.name or "outside of operators", in_ms(each.own, ""), in_ms(each.others, ""))
            for rank, each in longer[:SHOWN]
        ]
        console.print(_table(("rank", Words("its host is longer in"), "its own", "the others'"), told))
        _rest(console, len(longer), "operators")
    worst = sorted(found.meets, key=lambda meet: -meet.skew)[:SHOWN]
    meets = [
        (
            *_named(m.key),
            in_ms(m.skew, ""),
            *(("-", "-") if m.together else (str(m.late), m.cause)),
            in_ms(m.transfer, ""),
        )
        for m in worst
    ]
    if meets:
        console.print(
            _table(("step", Words("collective"), "last after first", "last is", Words("by"), "transfer"), meets)
        )
    _rest(console, len(found.meets), "collectives")
    lines = []
    for line in found.lines:
        place = here(line.place) if line.place else line.module or "no line known"
        prices = (
            [in_ms(p, "") for p in (line.price.alone, line.price.last, line.price.share)] if line.price else [""] * 3
        )
        lines.append((place, line.op, f"{line.count:.3g}", in_ms(line.blocked, ""), *prices))
    names = (Words("line"), Words("op"), "syncs", "blocked", "alone", "last", "share")
    console.print(_table(names, lines))
    console.print(f"\n{found.verdict}")
    for note in found.notes:
        console.print(f"note  {note}", style="dim")
    of_steps = (
        "ms per step, but how often a rank comes last, what others wait for it then, its operators, and each collective: of "
        "the whole recording; lines: on the mean rank, and what the whole job gains"
    )
    of_all = "ms of the whole recording; lines: on the mean rank, and what the whole job gains"
    console.print(f"\n{of_steps if found.marked else of_all}", style="dim")


def _named(key: str) -> tuple[str, str]:
    """Step and short name of a collective; its key is step/group/kernel/ordinal, see `analysis.rank`."""
    head, _, ordinal = key.rpartition("/")
    step, _, rest = head.partition("/")
    group, _, kernel = rest.rpartition("/")
    name = re.split(r"[(<]", kernel, maxsplit=1)[0].removeprefix("ncclKernel_").removeprefix("ncclDevKernel_")
    return step if int(step) >= 0 else "", " ".join(filter(None, (group, name, ordinal)))


class Words(str):
    """The head of a column that holds words, no figures."""

    __slots__ = ()


def _table(columns: tuple[str, ...], rows: list[Any]) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in columns:
        table.add_column(name, justify="left" if isinstance(name, Words) else "right")
    for row in rows:
        table.add_row(*row)
    return table


def _rest(console: Any, count: int, what: str) -> None:
    console.print(f"and {count - SHOWN:,} more {what}\n" if count > SHOWN else "", style="dim")
