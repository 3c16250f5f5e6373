"""syncscope report: where the host waited in a recording, what that costs, and the rewrite."""

from __future__ import annotations

import contextlib
import os
import shlex
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncscope.cli import _limits
from syncscope.cli._console import echo
from syncscope.cli._number import FiniteNumber
from syncscope.cli._parts import everything, only_steps
from syncscope.cli._traces import max_size
from syncscope.errors import UserError
from syncscope.model.words import visible

if TYPE_CHECKING:
    from types import ModuleType

    from syncscope.model.report import Report

MANY = 8  # recordings from which a log is told how far it is
LARGE = 8 << 20  # bytes of file from which the reading shows its progress


@click.command(short_help="What each line costs, from a recording.")
@click.argument("files", nargs=-1, required=True, metavar="FILE|FOLDER...")
@click.option(
    "--format",
    "format_",
    metavar="NAME",
    help="terminal (default), json, html, markdown, tensorboard, speedscope, collapsed; of findings and limits: sarif, "
    "github, gitlab, junit, concise.",
)
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    help="Write there; the suffix chooses the format. Of many, a folder (of pages, without --format), or a list: all.json.",
)
@click.option(
    "--source",
    type=click.Path(exists=True, path_type=Path),
    metavar="DIR",
    help="Where the source lies here, for traces of another machine.",
)
@only_steps
@max_size
@click.option(
    "--pinned",
    type=FiniteNumber(min=0, min_open=True),
    metavar="GB/s",
    help="How fast the device fetches from pinned memory, for what uploads that are not would save.",
)
@everything("Every line and note, and what each figure means (at the terminal).")
@click.option("--no-savings", "--no-price", "no_price", is_flag=True, help="Only what was measured; no replay.")
@click.option(
    "--verified",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="RESULT.json",
    help="Show beside each saving what `syncscope verify -o RESULT.json` measured (html, tensorboard).",
)
@_limits.number(
    "--max-syncs-per-step",
    "--max-reads-per-step",
    "max_reads_per_step",
    when="a step has more syncs than that",
)
@_limits.share(
    "--max-saving",
    "--max-price",
    "max_price",
    when="all syncs cost more of a step than that, in percent: 2%",
)
def command(
    files: tuple[str, ...],
    format_: str | None,
    output: str | None,
    source: Path | None,
    steps: tuple[int | None, int | None] | None,
    most: int,
    pinned: float | None,
    whole: bool,
    no_price: bool,
    verified: Path | None,
    max_reads_per_step: float | None,
    max_price: float | None,
) -> int:
    """Where the host waited in a recording, what each line costs a step, and the rewrite.

    FILE is what syncscope or torch.profiler wrote, of any age: .json or .json.gz, from CUDA, ROCm, XPU, OpenCL or a CPU. It may
    also be the .records that a killed program left, or - for standard input. The source files that it names are linted where
    they are at hand, never run.

    Of a FOLDER every trace below it is reported; of more than three there is a table, a row for each. A folder in it that holds
    the ranks of one job is reported as the job, as `syncscope ranks` does. A folder of pages has one of the job, those of its
    ranks, and `index.html`, which leads to all.

    Each recording is held to the limits by itself, and the ranks of one job are held to them as the job, whatever is written.
    What is said of one begins with its name, and of several the last line counts how many hold. One that breaks a limit is
    enough for 1; one that cannot be read or judged is enough for 2, where none breaks any.

    \b
    syncscope report run.pt.trace.json.gz                       a table for people
    syncscope report runs/                                      all below a folder: a row for each
    syncscope report run.json.gz --source ~/project             recorded elsewhere, the code is here
    syncscope report run.json.gz --format json | jq .verdict    for programs
    syncscope report run.json.gz -o report.html                 one file to send around
    syncscope report run.json.gz --format tensorboard -o logs   then: tensorboard --logdir logs
    syncscope report run.json.gz --max-syncs-per-step 3 --max-saving 2%   a gate for CI: exits 1

    Exit code: 0 all well, 1 a limit is broken, 2 a file could not be read to its end or a limit not be judged.
    """
    from dataclasses import replace

    from syncscope import api
    from syncscope.analysis.measured import with_measured
    from syncscope.cli import _expected, _gate, _held_jobs, _jobs, _left_behind, _ranks_alone, _traces
    from syncscope.cli._delivery import Delivery, Undelivered
    from syncscope.cli._lean import return_large_arrays
    from syncscope.cli._measured import measured
    from syncscope.cli._merged import unread
    from syncscope.cli._said_of_many import SaidOfMany

    return_large_arrays()
    if not any(name.endswith(_left_behind.SUFFIX) for name in files):
        _left_behind.offer(_left_behind.RECENT)

    paths = _traces.traces(files)
    exporter, name = chosen(format_ or ("html" if _is_folder_of_pages(output, paths) else None), output)
    each = source or steps or pinned or no_price or verified
    most_of = {"most_syncs": max_reads_per_step, "most_saving": max_price, "most_wait": None}
    asked = sum(limit is not None for limit in most_of.values())
    beside = False  # what is written holds the jobs alone, and others lie beside them
    codes: list[int] = []
    held: list[_held_jobs.HeldJob] = []
    if len(files) == 1 and not each and _as_job(name, output):
        paths, codes = _as_jobs(paths, most, name, output, whole, most_of)
        beside = bool(codes and paths and output)
        if beside:
            held_to = ", held to the limits all the same" if asked else ""
            others = "1 other trace" if len(paths) == 1 else f"{len(paths)} other traces"
            echo(f"not on it: {others} in {visible(files[0])}{held_to}", err=True)
        if codes and (not paths or (beside and not asked)):
            return _worst(codes)
    else:
        if len(files) == 1 and (max_reads_per_step is not None or max_price is not None):
            paths = _jobs.newest_of_each(paths)
            found = _jobs.jobs(paths)
            several = len(found) > 1 or sum(map(len, found.values())) < len(paths)
            held = _held_jobs.held_jobs(found, most, steps, most_of, several)
        elif (name == "terminal" and output is None) or name == "json":
            _say_what_is_one_job(_jobs.jobs(paths), name)
    findings = {"findings"} == exporter.TAKES
    shown = [job.name for job in held] if findings else []
    to = Undelivered() if beside else Delivery(exporter, name, output, [*shown, *paths], os.path.isdir(files[0]), whole)
    if isinstance(to, Delivery) and to.pages and not each and (pages := _jobs.jobs(paths)):
        from syncscope.cli import _pages

        codes, to.jobs = _pages.of_jobs(pages, most, str(output), to.names)
    limits_apart = getattr(exporter, "LIMITS", False)
    said = SaidOfMany()
    for job in held:
        if isinstance(job.known, UserError):
            said.unread(job.where, job.known, asked)
            continue
        said.limits(job.where, job.known.limits)
        if findings:
            to.take(job.known.limits_as_report(limits_apart), job.name)
    of_jobs = {path for job in held for path in job.paths}
    of_none = [path for path in paths if path not in of_jobs and path not in files]
    gone = _ranks_alone.not_all(of_none) if asked else {}
    for path in _one_by_one(paths) if to.waits else paths:
        try:
            report = read(path, source, steps, not no_price, most, pinned)
            if report.coverage is not None and report.coverage.empty:
                raise UserError(
                    f"{path} is no recording of a program: {report.coverage.refusal}", report.coverage.hint, path
                )
            of = f"{visible(path)}: " if len(paths) > 1 or codes else ""
            alone = path not in of_jobs
            given = list(_gate.limits(report, max_reads_per_step, max_price, pinned)) if alone else []
            given = [replace(limit, of=of) for limit in _expected.of_all_ranks(given, gone.get(path), None)]
            missing = None if any(limit.error for limit in given) else _not_whole(report, path)
            if findings:
                said.told(path, _why_nothing_was_linted(report, source))
                report = _with_limits(report, path, given, limits_apart)
                if missing is not None:
                    told = unread(path, missing, limits_apart)
                    report = replace(
                        report,
                        limits=(*report.limits, *told.limits),
                        findings=(*told.findings, *report.findings),
                    )
                said.told(path, _gate.in_no_file(report.findings) if name == "github" else "")
            if getattr(exporter, "WORK", False):
                report = api.with_work(report, measure=True)
            if verified is not None:
                report = with_measured(report, measured(verified))
            to.take(report, path)
            said.limits(path, given)
            if any(limit.held and limit.option.startswith(_gate.SYNCS) for limit in given):
                for note in _gate.uncounted(report):
                    said.note(of + note)
            if missing is not None:
                said.error(path, missing)
        except UserError as error:
            said.unread(path, error, asked if path not in of_jobs else 0)
            to.unread(path, error)
    to.end()
    said.end()
    return _worst([*codes, said.code])


def _not_whole(report: Report, path: str) -> UserError | None:
    """What of the file is missing, so that what was read of it is no success; None where nothing is."""
    meta = report.trace.meta if report.trace is not None else {}
    if meta.get("cut"):
        said = f"{path} is cut off before the end of its events: the report is of what came before"
        return UserError(said, "copy it once more, or read more of it (--max-size)", path)
    if meta.get("damaged"):
        said = f"{path} is damaged: the report is of what could be unpacked"
        return UserError(said, "copy it once more", path)
    if meta.get("torn"):
        said = f"{path} has not all that stands before its events: what device and which rank it is of may be missing"
        return UserError(said, "copy it once more", path)
    return None


def _one_by_one(paths: Sequence[str]) -> Iterator[str]:
    """The recordings, and on standard error how far it is."""
    from syncscope.cli._progress import Progress

    with Progress("recordings", logged="report" if len(paths) > MANY else "") as tick:
        for done, path in enumerate(paths):
            tick(done, len(paths))
            yield path


def _worst(codes: Sequence[int]) -> int:
    """A limit that is broken, else what could not be read or judged."""
    return 1 if 1 in codes else max(codes)


def _with_limits(report: Report, path: str, given: Sequence[_limits.GivenLimit], shown: bool) -> Report:
    """The report whose findings are shown, with its limits: those that are broken among these, or all, `shown` apart."""
    from dataclasses import replace

    from syncscope.cli import _gate
    from syncscope.exporters import _figures as figures

    findings = tuple(figures.told(report))
    if shown:
        return replace(report, findings=findings, limits=tuple(limit.shown for limit in given))
    return replace(report, findings=(*_gate.as_findings(report.lines, path, given), *findings))


def _why_nothing_was_linted(report: Report, source: Path | None) -> str:
    """Why a format which shows findings has none, where that is so because no source was there."""
    if report.sources:
        return ""
    from syncscope.analysis.sources import ambiguous, elsewhere

    named = {place.path for place in report.trace.places} if report.trace is not None else set()
    if not named:
        why, hint = "it names no source file", "`syncscope run` records lines"
    elif source is not None and (several := ambiguous(named, source)):
        why, hint = several[0]
    elif folder := elsewhere(named):
        why, hint = "its source lies outside of the folder you work in", f"`--source {shlex.quote(folder)}`"
    else:
        why, hint = "none of the source files that it names is here", "--source DIR says where they lie"
    return f"nothing was linted, for {why}: {hint}"


def _as_job(name: str, output: str | None) -> bool:
    """Whether a job can be shown so: as a table for people, as markdown, or as a page."""
    if output is None:
        return name in ("terminal", "markdown")
    return name in ("html", "markdown") and bool(Path(output).suffix)


def _say_what_is_one_job(jobs: Mapping[str, list[str]], name: str) -> None:
    """That recordings of which each is told alone are of one job."""
    for where, own in jobs.items():
        said = f"{len(own)} ranks of one job, each alone; what a line costs the job: syncscope ranks {visible(where)}"
        echo(f"{said}\n" if name == "terminal" else f"{said} --format json", err=name != "terminal")


def _as_jobs(
    paths: Sequence[str], most: int, name: str, output: str | None, whole: bool, most_of: Mapping[str, float | None]
) -> tuple[list[str], list[int]]:
    """Report the jobs among these traces as jobs, held to limits: the traces that are of none, and an exit code of each.

    Where recordings are no ranks of one job, which is said, they are left.
    """
    from syncscope.cli import _jobs
    from syncscope.cli._job import JobView
    from syncscope.cli._many_jobs import show_jobs

    newest = _jobs.newest_of_each(paths)
    found = _jobs.jobs(newest)
    view = JobView(name, output, whole, most_of)
    codes, none = show_jobs(found, most, view)
    for error in none.values():
        echo(f"each alone, for {error.message}\n", err=True)
    told = {path for where, own in found.items() if where not in none for path in own}
    return [path for path in newest if path not in told], codes


def _is_folder_of_pages(output: str | None, paths: Sequence[str]) -> bool:
    """Whether what is written is a folder and has pages, if no format is named: so it is of many without a suffix."""
    if output is None:
        return False
    return output.endswith("/") or os.path.isdir(output) or (len(paths) > 1 and not Path(output).suffix)


def chosen(format_: str | None, output: str | None) -> tuple[ModuleType, str]:
    """The exporter by its name, else by the suffix of the output, else the terminal.

    Raises:
        UserError: no format is called so, or the output does not say which.
    """
    from syncscope.cli import _formats

    has = {"findings", "trace"}
    found = _formats.chosen(format_ or (None if output else "terminal"), output, has)
    if found is None:
        endings = ", ".join(module.SUFFIX for module in _formats.able(has).values() if module.SUFFIX)
        raise UserError(
            f"{output} does not say which format is wanted", f"add --format, or end it with one of {endings}"
        )
    return found


def read(
    path: str,
    source: Path | None,
    steps: tuple[int | None, int | None] | None,
    prices: bool,
    most: int,
    pinned: float | None = None,
) -> Report:
    """The report of one file, of at most so many bytes, unpacked; the reading of a large one shows how far it is."""
    from syncscope import api
    from syncscope.cli import _traces

    if os.path.isdir(path):
        if os.path.isdir(os.path.join(path, "graph")):
            raise _traces.no_trace(path, f"its tables are for `syncscope ranks {path}`")
        raise _traces.no_trace(path)
    _traces.refuse_program(path)
    if path == "-":
        return api.report(
            sys.stdin.buffer,
            name="standard input",
            code=source,
            steps=steps,
            prices=prices,
            most=most,
            pinned=pinned,
        )
    with contextlib.suppress(OSError):
        if stat.S_ISFIFO(os.stat(path).st_mode) and not path.startswith(("/dev/", "/proc/")):
            echo(f"{visible(path)} is a pipe: waiting for what another program writes to it", err=True)
    if (
        path.endswith(".records")
        or "://" in path
        or not os.path.isfile(path)
        or os.path.getsize(path) < LARGE
        or not sys.stderr.isatty()
    ):
        return api.report(path, code=source, steps=steps, prices=prices, most=most, pinned=pinned)
    from rich.console import Console
    from rich.progress import Progress

    shown = visible(os.path.basename(path)).replace("[", r"\[")
    with (
        Progress(console=Console(stderr=True), transient=True) as progress,
        progress.open(path, "rb", description=shown) as file,
    ):
        return api.report(file, name=path, code=source, steps=steps, prices=prices, most=most, pinned=pinned)
