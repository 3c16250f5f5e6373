"""syncscope report: where the host waited in a recording, what that costs, and the rewrite."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from syncscope import files
from syncscope.cli._console import echo
from syncscope.cli._traces import max_size
from syncscope.errors import UserError
from syncscope.model.words import visible

if TYPE_CHECKING:
    from types import ModuleType

    from syncscope.model.report import Report

LARGE = 8 << 20  # bytes of file from which the reading shows its progress


class StepRange(click.ParamType[Any]):
    """`A:B`: steps A up to, not including, B; either may be left out."""

    name = "A:B"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The two ends, None where left out."""
        first, colon, last = str(value).partition(":")
        try:
            ends = (int(first) if first else None, int(last) if last else None)
        except ValueError:
            ends, colon = (None, None), ""
        return ends if colon else self.fail(f"{value!r} is no range of steps; 3:6 means steps 3, 4 and 5", param, ctx)


class Share(click.ParamType[Any]):
    """`2%`, or `2`: per cent of a step."""

    name = "PERCENT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As a share: 0.02."""
        try:
            share = float(str(value).rstrip("% ")) / 100
        except ValueError:
            share = -1.0
        return (
            share if 0 <= share <= 1 else self.fail(f"{value!r} is no percentage from 0 to 100; write 2%", param, ctx)
        )


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
    "-o", "--output", metavar="OUT", help="Write there; the suffix chooses the format. A folder for many files."
)
@click.option(
    "--source",
    type=click.Path(exists=True, path_type=Path),
    metavar="DIR",
    help="Where the source lies here, for traces of another machine.",
)
@click.option("--steps", type=StepRange(), help="Only these steps: 3:6 is steps 3, 4 and 5.")
@max_size
@click.option(
    "--pinned",
    type=click.FloatRange(min=0, min_open=True),
    metavar="GB/s",
    help="How fast the device fetches from pinned memory, for what uploads that are not would save.",
)
@click.option("--all", "whole", is_flag=True, help="Every line and note, and what each figure means (at the terminal).")
@click.option("--no-savings", "--no-price", "no_price", is_flag=True, help="Only what was measured; no replay.")
@click.option(
    "--verified",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="RESULT.json",
    help="Show beside each saving what `syncscope verify -o RESULT.json` measured (html, tensorboard).",
)
@click.option(
    "--max-syncs-per-step",
    "--max-reads-per-step",
    "max_reads_per_step",
    type=click.FloatRange(min=0),
    metavar="N",
    help="Exit 1 when a step has more syncs than that.",
)
@click.option(
    "--max-saving",
    "--max-price",
    "max_price",
    type=Share(),
    help="Exit 1 when all syncs cost more of a step than that: 2%.",
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

    FILE is what syncscope or torch.profiler wrote, of any age: .json or .json.gz, from CUDA, ROCm, XPU, OpenCL or a CPU; or the
    .records that a killed program left; - is standard input. The source files it names are linted where they are at hand,
    never run. Of a FOLDER every trace below it is reported; one with the ranks of one job alone as the job, as `syncscope
    ranks` does, at the terminal and as a page.

    \b
    syncscope report run.pt.trace.json.gz                       a table for people
    syncscope report run.json.gz --source ~/project             recorded elsewhere, the code is here
    syncscope report run.json.gz --format json | jq .verdict    for programs
    syncscope report run.json.gz -o report.html                 one file to send around
    syncscope report run.json.gz --format tensorboard -o logs   then: tensorboard --logdir logs
    syncscope report run.json.gz --max-syncs-per-step 3 --max-saving 2%   a gate for CI: exits 1

    Exit status: 0 all well, 1 a limit is broken, 2 a file could not be read or a limit not be judged.
    """
    from dataclasses import replace

    from syncscope import api
    from syncscope.analysis.measured import with_measured
    from syncscope.cli import _gate, _left_behind, _traces
    from syncscope.cli._console import complain
    from syncscope.cli._lean import return_large_arrays
    from syncscope.cli._measured import measured
    from syncscope.exporters import _figures as figures

    return_large_arrays()
    if not any(name.endswith(_left_behind.SUFFIX) for name in files):
        _left_behind.offer(_left_behind.RECENT)

    exporter, name = chosen(format_, output)
    paths = _traces.traces(files)
    each = source or steps or pinned or no_price or verified or max_reads_per_step is not None or max_price is not None
    if (job := _traces.ranks(paths)) and _as_job(name, output):
        if len(files) == 1 and not each and (code := _job(paths, job, most, output)) is not None:
            return code
        if output is None and (len(files) > 1 or each):
            folders = {os.path.dirname(path) or "." for path in paths}
            where = folders.pop() if len(folders) == 1 else "with all of them"
            echo(f"{job} ranks of one job, each alone; what a line costs the job: syncscope ranks {where}\n")
    elif name == "terminal" and output is None:
        for where, ranks in _traces.jobs(paths).items():
            echo(f"{ranks} ranks of one job, each alone; what a line costs the job: syncscope ranks {visible(where)}")
    one_file = output is not None and Path(output).suffix and not hasattr(exporter, "write")
    if output is not None and one_file and len(paths) > 1 and not Path(output).is_dir():
        folder = f"--format {name} -o {Path(output).with_suffix('')}/"
        said = f"{len(paths)} recordings do not go into one file, {output}"
        raise UserError(said, f"name a folder, `{folder}`, or one recording, as {visible(paths[-1])}")
    as_list = name == "json" and output is None and (len(files) > 1 or os.path.isdir(files[0]))
    joins = name in ("terminal", "json") or getattr(exporter, "JOINS", False)
    if output is None and ((len(paths) > 1 and not joins) or not hasattr(exporter, "export")):
        raise UserError(f"--format {name} needs a place to write to", "add -o and the name of a folder")
    failed = False
    over: list[str] = []
    objects: list[Any] = []
    written: set[Path] = set()
    for path in paths:
        try:
            report = read(path, source, steps, not no_price, most, pinned)
            if report.coverage is not None and report.coverage.empty:
                raise UserError(f"{path} is no recording of a program: {report.coverage.refusal}", report.coverage.hint)
            told, unjudged = _gate.held(report, max_reads_per_step, max_price, pinned)
            if {"findings"} == exporter.TAKES:
                _say_if_nothing_was_linted(report, path)
                own = tuple(figures.told(report))
                if getattr(exporter, "LIMITS", False):  # shows those that hold, too
                    each_limit = tuple(_gate.limits(report, max_reads_per_step, max_price, pinned))
                    report = replace(report, findings=own, limits=each_limit)
                else:
                    report = replace(report, findings=(*_gate.as_findings(report, path, told, unjudged), *own))
            if getattr(exporter, "WORK", False):
                report = api.with_work(report, measure=True)
            if verified is not None:
                report = with_measured(report, measured(verified))
            if as_list:
                objects.append(exporter.as_object(report))
            elif output is None:
                show(report, exporter, name, whole)
            else:
                keep(report, exporter, target(Path(output), path, exporter, written if len(paths) > 1 else None))
            over += [f"{visible(path)}: {told[0]}", *told[1:]] if told and len(paths) > 1 else told
            if unjudged is not None:
                raise unjudged
        except UserError as error:
            failed = True
            complain(error if path in error.message else UserError(f"{path}: {error.message}", error.hint))
    if as_list:
        echo(json.dumps(objects, indent=2))
    for line in over:
        echo(line, err=True)
    return 2 if failed else 1 if over else 0


def _say_if_nothing_was_linted(report: Report, path: str) -> None:
    """That a format which shows findings has none, where that is so because no source was there."""
    if report.sources:
        return
    from syncscope.analysis.sources import elsewhere

    named = {place.path for place in report.trace.places} if report.trace is not None else set()
    if not named:
        why, hint = "it names no source file", "`syncscope run` records lines"
    elif folder := elsewhere(named):
        why, hint = "its source lies outside of the folder you work in", f"`--source {shlex.quote(folder)}`"
    else:
        why, hint = "none of the source files that it names is here", "--source DIR says where they lie"
    echo(f"{visible(path)}: nothing was linted, for {why}: {hint}", err=True)


def _as_job(name: str, output: str | None) -> bool:
    """Whether a job can be shown so: as a table for people, or as a page."""
    return (name == "terminal" and output is None) or (
        name == "html" and output is not None and bool(Path(output).suffix)
    )


def _job(paths: list[str], ranks: int, most: int, output: str | None) -> int | None:
    """The report of these ranks as a job, and its exit code; None where they turn out to be none, which is said."""
    from syncscope.analysis.one_job import NotOneJobError
    from syncscope.cli.ranks import show_job

    heading = f"{ranks} ranks of one job; of one alone: syncscope report {visible(paths[0])}\n"
    try:
        return show_job(paths, most, output=output, heading=heading)
    except NotOneJobError as error:
        echo(f"each alone, for {error.message}\n", err=True)
        return None


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


def show(report: Report, exporter: ModuleType, name: str, whole: bool = False) -> None:
    """Print it: for people as wide as the terminal is, and in short unless the `whole` is asked for; for others as the file
    would be."""
    if name != "terminal":
        text = exporter.export(report)
        ends = text.endswith("\n" if isinstance(text, str) else b"\n")
        echo(text, nl=bool(text) and not ends, commands=getattr(exporter, "COMMANDS", False))
        return
    from syncscope.cli._console import console

    out = console()
    out.print(exporter.render(report, out.width, whole))


def keep(report: Report, exporter: ModuleType, out: Path) -> None:
    """Write it, so that there is the old file or the whole new one, and say what was written."""
    if hasattr(exporter, "write"):
        try:
            written = exporter.write(report, out)
        except OSError as error:
            said = f"{out} cannot be written: {error.strerror or error}"
            raise UserError(said, "choose another place with -o") from None
        echo("".join(f"wrote {file}\n" for file in written) + exporter.how_to_open(out), err=True)
        return
    text = exporter.export(report)
    if not out.parent.is_dir() and not out.parent.parent.is_dir():
        raise UserError(f"there is no folder {out.parent}", "make it, or choose another place with -o")
    files.write(out, text.encode() if isinstance(text, str) else text)
    echo(f"wrote {out}", err=True)


def target(output: Path, path: str, exporter: ModuleType, taken: set[Path] | None) -> Path:
    """Where the report of one file goes: to the output, or into it where it is a folder or there are many (`taken`)."""
    from syncscope.exporters import stem

    if hasattr(exporter, "write") or (taken is None and not output.is_dir()):
        return output
    taken = set() if taken is None else taken
    names = (
        output / f"{stem(path)}{number}{exporter.SUFFIX}"
        for number in ("", *(f"-{n}" for n in range(2, len(taken) + 3)))
    )
    found = next(name for name in names if name not in taken)
    taken.add(found)
    return found
