"""syncscope ranks: the traces of all ranks as one job."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from syncscope.cli import _expected, _formats, _limits, _outputs
from syncscope.cli._console import complain, echo
from syncscope.cli._job import JobView, concluded, show_job, told
from syncscope.cli._jobs import are_several, jobs, newest_of_each
from syncscope.cli._many_jobs import show_jobs
from syncscope.cli._parts import Steps, everything, only_steps
from syncscope.cli._traces import max_size, no_trace, traces
from syncscope.errors import UserError
from syncscope.model.words import visible

FORMATS = ("terminal", "json", "html", "markdown", "junit", "github", "gitlab", "sarif", "concise")


@click.command(short_help="Many ranks as one job: who waits for whom.")
@click.argument("files", nargs=-1, required=True, metavar="FOLDER|FILE...")
@click.option(
    "--tables", type=click.Path(path_type=Path), metavar="DIR", help="Keep Parquet tables of every rank there."
)
@_expected.option(
    "Exit 2 when fewer than N ranks could be read. Default, with a limit: as many as the recordings say the job has."
)
@only_steps
@max_size
@everything("Every rank, operator and collective, in place of those that matter most (at the terminal, markdown).")
@_formats.options(
    FORMATS,
    "Write there: a page with the ranks side by side, and who waited for whom (.html), JSON (.json), tables (.md), or the "
    "limits as tests (.junit.xml); github, gitlab, sarif and concise have those that do not hold.",
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
    steps: Steps,
    most: int,
    whole: bool,
    format_: str | None,
    output: str | None,
    **most_of: float | None,
) -> int:
    """Who waits for whom in a job, and what a line costs all of it.

    FOLDER holds one trace for each rank, or the tables that --tables made; traces may be named one by one. Of several of a rank
    the newest is used. A rank that waits for another one in a collective gains nothing by not waiting for its device: what a
    line saves here is what the job gains. Recordings that cannot be of one job are refused, by their ranks, sizes of job, dates
    and devices; those that name no rank and share no collective also by their programs' files, and where one was over before
    the other began. Of several jobs, in folders of their own, there is a row for each.

    \b
    syncscope ranks traces/                       where a step of each rank goes, and who waits for whom
    syncscope ranks traces/ --steps 3:6 --all     of some steps, every rank
    syncscope ranks traces/ -o job.html           a page: the ranks side by side, heat maps of steps
    syncscope ranks traces/ --tables tables/      and keep the tables: SQL by DuckDB, or again by `syncscope ranks tables/`
    syncscope ranks traces/ --max-saving 2% --max-wait-for-rank 5%    a gate for CI: exits 1

    Exit code: 0 all well, 1 a limit is broken, 2 a file could not be read, they are not of one job, or a limit not be judged,
    as where a rank of the job is missing.
    """
    view = JobView(_formats.plain(format_, output, FORMATS), output, whole=whole, most_of=most_of, expect=expect)
    if len(files) == 1 and os.path.isdir(os.path.join(files[0], "graph")):
        from syncscope.analysis import fleet

        _outputs.spare([output])
        if steps is not None:
            raise UserError("tables hold what was made of all steps", "name the traces to see some of them")
        return told(concluded(fleet.load(Path(files[0])), files[0], view), view)
    missing = next((name for name in files if not os.path.exists(name) and "://" not in name), None)
    if missing is not None:
        raise UserError(f"there is no {missing!r}", "name the folder that holds one trace for each rank")
    paths = traces(files)
    if len(files) == 1:
        paths = newest_of_each(paths)
    if empty := next((path for path in paths if os.path.isdir(path)), None):
        raise no_trace(empty, "traces end in .json or .json.gz, one for each rank")
    several = jobs(paths)
    if not are_several(several):
        return show_job(paths, most, view, steps, tables)
    if tables is not None:
        raise UserError(f"tables are of one job, and here are {len(several)}", f"name one, as {visible(min(several))}")
    return _of_several(several, paths, most, view, steps)


def _of_several(several: dict[str, list[str]], paths: Sequence[str], most: int, view: JobView, steps: Steps) -> int:
    """Print several jobs, or write them; the exit code."""
    codes, none = show_jobs(several, most, view, steps)
    for where, error in none.items():
        complain(UserError(f"{where}: {error.message}", error.hint))
    if others := len(paths) - sum(map(len, several.values())):
        told = "1 trace beside them that is" if others == 1 else f"{others} traces beside them that are"
        echo(f"not told: {told} of no job", err=True)
    return 1 if 1 in codes else max([*codes, 2 if none else 0])
