"""`syncscope lint`: the hazards of source files, and their fixes."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from syncscope.cli import _completion, _outputs, _why
from syncscope.cli._console import echo
from syncscope.cli._lint_conflicts import TEXT, conflicts
from syncscope.cli._lint_told import Output, complain, exporter, finish
from syncscope.cli._progress import Progress
from syncscope.errors import UserError

if TYPE_CHECKING:
    from syncscope.linter.run import Files
    from syncscope.linter.session import Linted


def names(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...] | None:
    """Names from options that may be repeated and may hold several, with commas between."""
    return tuple(name.strip() for one in given for name in one.split(",") if name.strip()) or None


@click.command(short_help="The lines where the host waits, and their rewrites.")
@click.argument("paths", nargs=-1)
@click.option(
    "--select",
    multiple=True,
    callback=names,
    shell_complete=_completion.rules,
    metavar="RULES",
    help="Only these rules or families; ALL is all.",
)
@click.option(
    "--ignore",
    multiple=True,
    callback=names,
    shell_complete=_completion.rules,
    metavar="RULES",
    help="Not these rules or families.",
)
@click.option(
    "--min-confidence",
    type=click.Choice(["low", "medium", "high"]),
    help="How sure it must be that a value is a tensor on a device. Default: medium.",
)
@click.option(
    "--all", "everything", is_flag=True, default=None, help="Cold code too: set-up, evaluation, guarded logging."
)
@click.option("--fixable", is_flag=True, help="Only what can be mended.")
@click.option("--backend", type=click.Choice(["ocl"]), help="Also report what falls back to the CPU on this backend.")
@click.option("--fix", is_flag=True, help="Make the fixes that change nothing: same value, gradient, dtype, error.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix: also those that change what they say they change.")
@click.option("--diff", is_flag=True, help="Show every fix; with --fix, what it would write. Writes nothing.")
@click.option("-i", "--interactive", is_flag=True, help="Ask about each fix.")
@click.option("--add-allow", is_flag=True, help="Write `# syncscope: allow[rule]` to every finding.")
@click.option("--reason", default="", metavar="TEXT", help="With --add-allow: why.")
@click.option("--baseline", metavar="FILE", help="Report only what this file does not hold.")
@click.option(
    "--since", metavar="REV", help="Report only what was not there where this branch left the git revision REV."
)
@click.option("--write-baseline", metavar="FILE", help="Write all findings to a baseline, and report none.")
@click.option("--prune-baseline", is_flag=True, help="Take out of the baseline what is not found any more.")
@click.option(
    "--format",
    "--output-format",
    "form",
    shell_complete=_completion.formats,
    metavar="NAME",
    help="text (of more than 20 the first whole, if not named), concise, json, sarif, github, gitlab, junit.",
)
@click.option("-o", "--output", metavar="FILE", help="Write there; without --format, the suffix chooses the format.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colours. Default: auto.")
@click.option(
    "--trace", metavar="FILE|FOLDER", help="Order by what a recording says each costs; hide what is worth nothing."
)
@click.option(
    "--sort",
    type=click.Choice(["place", "worth"]),
    default="place",
    help="worth: first what waits many times in a step, then once in each, then more seldom. Default: by file and line.",
)
@click.option("--from-trace", metavar="FILE", help="Lint the OpenCL C that the programs of a recording were made of.")
@click.option(
    "--explain-finding", is_flag=True, help="Say how each finding is known; with FILE:LINE why a line is shown or not."
)
@click.option("--statistics", is_flag=True, help="Count by rule, with what mends them, instead of listing.")
@click.option(
    "-q",
    "--quiet",
    is_flag=True,
    help="The findings alone: no counts, no hints, no `also waits`.",
)
@click.option("--watch", is_flag=True, help="Lint again whenever a file changes.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Processes. Default: as many as CPUs.")
@click.option("--no-cache", is_flag=True, help="Neither read nor write the cache.")
@click.option(
    "--force-exclude", is_flag=True, default=None, help="Leave out what `exclude` names even if it is named here."
)
@click.option("--rules", multiple=True, metavar="FOLDER", help="Load the rules there: code of yours, or in CI.")
@click.option("--config", metavar="FILE", help="This pyproject.toml instead of the nearest.")
@click.option("--isolated", is_flag=True, help="No pyproject.toml at all.")
@click.option("--stdin-filename", metavar="PATH", help="What the source on standard input (`-`) is called.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even if there are findings.")
def command(**said: Any) -> int:
    """Find the lines where the host waits for the device, and offer rewrites.

    PATHS are files, folders (default: this one), globs in quotes, or - for standard input. Notebooks are read too, and OpenCL C
    in files (.cl, .clh, .ocl, .opencl) and in strings of Python, C and C++, with the calls that enqueue it. Nothing is imported
    or run.

    \b
    syncscope lint train.py                      what waits, how sure, and what would mend it
    syncscope lint --diff src/                   every fix, its safety, and what it changes
    syncscope lint --fix src/                    make the fixes that change nothing else
    syncscope lint --fix --unsafe-fixes --diff   what all fixes would write, as one patch
    syncscope lint --all --min-confidence low    everything that could wait anywhere
    syncscope lint --write-baseline known.json   from now on report only new ones:
    syncscope lint --baseline known.json
    syncscope lint --since origin/main           only what this branch brings, uncommitted and untracked files too
    syncscope lint --explain-finding train.py:42 why this line is shown, or hidden
    syncscope lint --trace run.json.gz src/      what costs most first, with its price
    syncscope lint -o out.sarif                  for code scanning (github, gitlab, junit, json too)
    syncscope lint --select kernel,host-program  OpenCL C, and what enqueues it, alone
    syncscope lint --from-trace run.json.gz      the OpenCL C that the recorded program gave to the driver
    cat x.py | syncscope lint - --stdin-filename src/x.py
    syncscope explain host-read                  what a rule means, with its rewrite

    --since REV compares with the merge base of REV and HEAD, as `git diff REV...` does. A finding that was there then is not
    told, in whatever file its code is now. Files that changed are linted, and others of which steps reach more since. --fix
    mends only new findings.

    In pyproject.toml, [tool.syncscope.lint] takes select, ignore, hot, exclude and more: `syncscope config` prints all of it.
    In a line, `# syncscope: allow[host-read] reason` lets a finding stand.

    \b
    Exit code: 0 clean
               1 findings, a file that is no Python among them
               2 usage, nothing to lint, or something not read or written
    """
    conflicts(said)
    if said["explain_finding"] and (places := _why.places_in(said["paths"])):
        return max(_of_line(path, line, said) for path, line in places)
    if said["watch"]:
        from syncscope.cli._watch import watch

        return watch(said["paths"] or (".",), lambda: lint(said))
    return lint(said)


def _of_line(path: str, line: int, said: dict[str, Any]) -> int:
    if not os.path.isfile(path):
        raise UserError(f"there is no {path!r}", "name a file and a line of it, as train.py:42")
    return complain(_why.why(path, line, wanted(said | {"paths": (path,)}), said))


def lint(said: dict[str, Any]) -> int:
    """One run, from files to exit code."""
    from syncscope.linter.gathering import gather, stdin
    from syncscope.linter.session import plural

    files = wanted(said)
    safeties = chosen(said)
    said = {**said, "exporter": exporter(said)}
    spare(said, files)
    revision = None
    if said["since"] is not None:
        from syncscope.linter.revision import since

        revision = since(said["since"], files.paths)
    if said["from_trace"]:
        from syncscope.linter.gathering import texts

        linted: Linted = texts(programs(said["from_trace"]), files)
    elif "-" in said["paths"]:
        if len(said["paths"]) > 1:
            raise UserError("standard input comes alone", "lint files in a command of their own")
        linted = stdin(sys.stdin.buffer.read(), said["stdin_filename"] or "-", files, safeties)
        if said["fix"] and not said["diff"]:
            sys.stdout.buffer.write(linted.written)
            return finish(linted, said, Output(err=True, color=said["color"]))
    else:
        with Progress("files", logged="" if said["quiet"] or said["form"] not in TEXT else "lint") as tick:
            linted = gather(
                files, safeties, processes(said["jobs"]), cached=not said["no_cache"], tick=tick, revision=revision
            )
        if said["trace"]:
            from syncscope.cli._priced import by_price

            echo(by_price(linted, said["trace"]), err=True)
        elif tells_of_imports(said, files):
            from syncscope.linter.imported import waiting_beside

            linted.beside = waiting_beside(files, linted.done, not said["no_cache"])
    if said["fix"] and not said["diff"] and not linted.is_stdin:
        linted.write()
    if said["fixable"]:
        linted.only_fixable()
    if said["sort"] == "worth" and not said["trace"]:
        linted.by_worth()
    if said["interactive"]:
        from syncscope.cli._interactive import ask

        linted = ask(linted, files)
    if said["add_allow"]:
        return allow(linted, said["reason"])
    if said["write_baseline"]:
        written = linted.write_baseline(said["write_baseline"])
        named = files.configs.of(files.paths[0]).baseline == os.path.abspath(said["write_baseline"])
        echo(written if named else f"{written}; pass it as --baseline", err=True)
        return complain(linted)
    if said["prune_baseline"]:
        if not files.first.baseline:
            raise UserError(
                "--prune-baseline: no baseline is named", "pass --baseline FILE, or set it in pyproject.toml"
            )
        echo(f"{plural(linted.prune_baseline(), 'known finding')} taken out of {files.first.baseline}", err=True)
    return finish(linted, said, Output(said["output"], color=said["color"]))


def spare(said: dict[str, Any], files: Files) -> None:
    """Refuse to write findings over what is read here.

    Raises:
        UserError: the output or the baseline to write is code, a recording, or was named as input.
    """
    from syncscope.linter.files import is_code

    named = [path for path in (*said["paths"], said["trace"], said["from_trace"]) if path]
    written = [path for path in (said["output"], said["write_baseline"]) if path]
    code = [path for path in written if is_code(path)]  # the folders that are linted may hold it, under any link
    _outputs.spare([said["output"]], [*named, *filter(None, [files.first.baseline]), *code])
    _outputs.spare([said["write_baseline"]], [*named, *code])


def tells_of_imports(said: dict[str, Any], files: Files) -> bool:
    """Whether somebody looks at what was named, and would take silence for there being nothing: no gate, nothing written."""
    others = (
        "quiet",
        "fix",
        "diff",
        "statistics",
        "fixable",
        "interactive",
        "add_allow",
        "write_baseline",
        "output",
        "since",
    )
    return said["exporter"] is None and not any(said[name] for name in others) and not files.first.baseline


def programs(path: str) -> list[tuple[str, bytes]]:
    """The programs in OpenCL C that a recording saw, each with a name for its findings.

    Raises:
        UserError: it saw none.
    """
    from syncscope import kineto

    held = kineto.read(path).meta.get("programs", ())
    if not held:
        hint = "record with `syncscope run`; a program that comes out of a cache as binary has no text"
        raise UserError(f"{path}: it holds no program in OpenCL C", hint)
    return [(f"{path}:program-{number}.cl", text.rstrip("\0").encode()) for number, text in enumerate(held, 1)]


def wanted(said: dict[str, Any]) -> Files:
    """The files of the command line with its configuration."""
    from syncscope.linter.config import Configs
    from syncscope.linter.run import Files

    if said["config"] and said["isolated"]:
        raise UserError("--config and --isolated do not go together", "choose one")
    over = {
        "select": said["select"],
        "ignore": said["ignore"],
        # a recording knows better than the linter what is hot, and on which device a value lives
        "min_confidence": said["min_confidence"] or ("low" if said["trace"] else None),
        "all": said["everything"] or bool(said["trace"]) or None,
        "measured": bool(said["trace"]) or None,
        "backend": said["backend"],
        "baseline": "" if said["write_baseline"] else said["baseline"],  # written anew means all that is found
        "force_exclude": said["force_exclude"],
        "rules": said["rules"] or None,
    }
    configs, named = Configs(said["config"] or "", said["isolated"]), bool(said["paths"]) and not said["watch"]
    return Files(said["paths"] or (".",), over, configs, must_hold_some=named)


def chosen(said: dict[str, Any]) -> list[Any]:
    """The safeties of the fixes to make."""
    from syncscope.model.finding import Safety

    if not said["fix"]:
        return []
    return [Safety.SAFE, Safety.UNSAFE] if said["unsafe_fixes"] else [Safety.SAFE]


def processes(jobs: int | None) -> int:
    """How many processes to use."""
    if jobs:
        return jobs
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def allow(linted: Linted, reason: str) -> int:
    """Write an `allow` to every finding."""
    from syncscope.linter.session import plural

    count = linted.add_allow(reason)
    echo(f"{plural(count, 'finding')} allowed", err=True)
    return complain(linted)
