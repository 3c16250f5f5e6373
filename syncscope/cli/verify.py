"""syncscope verify: what a rewrite really does to the step and to the values, tried on the program itself."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from syncscope import files
from syncscope.cli import _outputs
from syncscope.cli._console import echo
from syncscope.cli._duration import Duration
from syncscope.cli._script import USAGE, ProgramCommand, misplaced, script
from syncscope.errors import UserError

if TYPE_CHECKING:
    from syncscope.model.source import Place
    from syncscope.model.trace import Trace
    from syncscope.verify.request import Program
    from syncscope.verify.results import Verification
    from syncscope.verify.search import Search

VERSIONS = 0.2  # of the lines of the shorter of two versions stand in the other


class LinePlace(click.ParamType[Any]):
    """`FILE:LINE`."""

    name = "FILE:LINE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The place."""
        from syncscope.model.source import Place

        path, colon, line = str(value).rpartition(":")
        if not colon or not line.isdecimal():
            self.fail(f"{value!r} is no line; write train.py:95", param, ctx)
        if not os.path.isfile(path):
            self.fail(f"{path}: no such file", param, ctx)
        lines = Path(path).read_bytes().count(b"\n") + 1
        if not 1 <= int(line) <= lines:
            self.fail(f"{path} has {lines} lines, and none is line {line}", param, ctx)
        return Place(os.path.realpath(path), int(line))


class Percent(click.ParamType[Any]):
    """`1%`, or `1`."""

    name = "PERCENT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As a share: 0.01."""
        try:
            share = float(str(value).rstrip("% ")) / 100
        except ValueError:
            share = 0.0
        return share if share > 0 else self.fail(f"{value!r} is no percentage; write 1%", param, ctx)


@click.command(
    cls=ProgramCommand,
    short_help="The proof: rewrites tried, faster or not, same values or not.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("-m", "module", metavar="MODULE", help="Run a module, as `python -m` does.")
@click.option(
    "--device",
    metavar="ocl|cpu",
    type=click.Choice(["ocl", "cpu"]),
    help="Give a script that asks for cuda this device instead.",
)
@click.option(
    "--line", "lines", multiple=True, type=LinePlace(), help="Try the fixes of this line only, also suggestions."
)
@click.option("--rule", "rules", multiple=True, metavar="RULE", help="Try the fixes of this rule only.")
@click.option("--unsafe-fixes", is_flag=True, help="As for `run --try`; unsafe fixes are tried here in any case.")
@click.option(
    "--stale", is_flag=True, help="No rewrite: answer syncs with the value of the step before. Values are wrong then."
)
@click.option(
    "--before", metavar="COMMIT", help="No rewrite: the program as it is, beside its files as this commit has them."
)
@click.option(
    "--budget",
    type=Duration(),
    default="10m",
    show_default=True,
    help="Time for all of it: 90s, 10m, 1h. What is too short says what would do.",
)
@click.option(
    "--precision", type=Percent(), default="1%", show_default=True, help="Stop when the ratio is known so well."
)
@click.option(
    "--steps", type=click.IntRange(min=4), metavar="N", help="Steps of a run. Default: what 3 s hold, 12 to 200."
)
@click.option(
    "--seed", default=0, show_default=True, metavar="N", help="Seeds random, numpy and torch before the program does."
)
@click.option("--apart", is_flag=True, help="Time each version in a process of its own, also where one could hold all.")
@click.option(
    "--copies",
    type=click.Choice(["1", "2", "4"]),
    default="4",
    help="Copies of the program in memory at once, where each version has a process. Default: 4, or what memory holds.",
)
@click.option("--trace", metavar="FILE", help="Predict from this recording instead of a short one that is made.")
@click.option("--write", is_flag=True, help="Write what is kept into the files.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write what is kept, or open, as a patch (.patch, .diff), or all as JSON (.json).",
)
@click.option("--format", "format_", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True)
@click.option("--quiet", is_flag=True, help="Say nothing of what is being run.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[SCRIPT [SCRIPT]] [ARGUMENTS...]")
def command(arguments: tuple[str, ...], **said: Any) -> int:
    """Try the rewrites on the program itself: is the step shorter, and does it compute the same?

    \b
    syncscope verify train.py --epochs 1           every fix that the linter offers for lines that wait here
    syncscope verify --line train.py:95 --rule host-read -m pkg.train
    syncscope verify before.py after.py            two versions of one's own
    syncscope verify --before main train.py        what a branch does to a program, or to a library that it imports
    syncscope verify --device ocl train.py         without a GPU
    syncscope verify --budget 2m train.py          two minutes: enough where a run takes seconds, and nothing else runs
    syncscope verify --stale train.py              no rewrite: what if the syncs did not wait?

    The fixes are made to a copy. The program is run as written and rewritten, in turns: in one process where that can be, or
    in one for each. All have the same seeds and make the same first steps, without a profiler. Steps that still warm up do not
    count. Parameters, losses and all values that both read are compared; the program against itself is the yardstick.

    Each fix is tried by itself and all together. What changes values beyond its text, or gives nothing, is left out; the rest
    is shown as a patch. A ratio of 0.96 (0.88 to 1.05) says: the step is likely 4 % shorter, and may be 12 % shorter or 5 %
    longer. Where that decides nothing, the budget that would is named.

    What a run writes (checkpoints, logs) is taken back when it is over. Ctrl-C ends it and shows what is known.

    Options stand before the program, what follows it is the program's. A .py file as first argument of SCRIPT is another
    version of it, if they share a fifth of their lines and no `--` stands between.

    \b
    Exit code: 0 there is a gain (of processor time where it says so), and no value changed
               1 nothing gains, or a fix was refused
               2 it cannot be run
               3 the budget was spent before anything was decided
    """
    ranks = os.environ.get("WORLD_SIZE") or "1"
    if ranks != "1":
        raise UserError(
            f"verify runs a program in one process, and this is one of {ranks} ranks",
            "start it without torchrun, with WORLD_SIZE=1",
        )
    if said["unsafe_fixes"] and not said["quiet"]:
        echo("--unsafe-fixes: verify tries them in any case", err=True)
    program, other = programs(arguments, said)
    if said["output"] and not said["output"].endswith((".patch", ".diff", ".json")):
        raise UserError(f"{said['output']} does not say what to write", "end it with .patch or .json")
    if other is not None and (said["lines"] or said["rules"] or said["write"] or said["stale"]):
        raise UserError("two versions have no fixes to choose from", "leave out --line, --rule, --write and --stale")
    read = [run.target for run in (program, other) if run is not None and not run.module]
    _outputs.spare([said["output"]], [*read, *(place.path for place in said["lines"]), *filter(None, [said["trace"]])])
    if said["before"] and (other or said["lines"] or said["rules"] or said["write"] or said["stale"]):
        raise UserError(
            "--before compares with a commit, and tries no fixes",
            "leave out --line, --rule, --write, --stale and the second script",
        )
    if said["stale"] and (said["write"] or said["rules"]):
        raise UserError("--stale makes no fixes", "leave out --write and --rule")
    if said["write"]:
        _must_not_be_libraries(said["lines"])
    if said["rules"]:  # before the program is run, which may take minutes
        from syncscope.linter.run import Files
        from syncscope.verify.plan import must_be_known

        must_be_known(said["rules"], [Files([]).config(os.curdir if program.module else program.target)])
    found = verified(program, other, said)
    return finished(found, said)


def _must_not_be_libraries(lines: tuple[Place, ...]) -> None:
    """That none of these is a line of an installed package: what is tried there is tried in a copy, and others use it, too.

    Raises:
        UserError: one is.
    """
    from syncscope.tracers.places import LIBRARY, kind_of_file

    for place in lines:
        if kind_of_file(place.path) == LIBRARY:
            raise UserError(
                f"{os.path.relpath(place.path)} is a library's, and no library is written to",
                "-o fixes.patch keeps what is found, for those who maintain it",
            )


def programs(arguments: tuple[str, ...], said: dict[str, Any]) -> tuple[Program, Program | None]:
    """The program, and its other version if one is named.

    Raises:
        UserError: there is no such script.
    """
    from syncscope.verify.request import Program

    module, device = said["module"], said["device"]
    if module:
        return Program(module, arguments, True, device), None
    if not arguments:
        raise UserError("no program to verify", "syncscope verify train.py, or syncscope verify -m package.train")
    first, *rest = script(arguments[0], "verify"), *arguments[1:]
    other = None
    if rest and rest[0] == "--":
        rest = rest[1:]
    elif rest and rest[0].endswith(".py") and os.path.isfile(rest[0]) and _are_versions(first, rest[0]):
        other = Program(rest[0], tuple(rest[1:]), False, device)
        rest = rest[1:]
    return Program(first, tuple(rest), False, device), other


def _are_versions(one: str, other: str) -> bool:
    """Whether two scripts are versions of one program, and not one of them the other's data: they share lines."""
    lines = [{line.strip() for line in Path(path).read_bytes().splitlines()} - {b""} for path in (one, other)]
    return len(lines[0] & lines[1]) >= VERSIONS * min(map(len, lines))


def verified(program: Program, other: Program | None, said: dict[str, Any]) -> Verification:
    """Tries it, and comes back with what is known: at the end, when the budget is spent, or when it is interrupted."""
    from syncscope import kineto
    from syncscope.cli._verified import Bar
    from syncscope.verify.beforehand import NothingToTryError, must_offer
    from syncscope.verify.commits import texts_of
    from syncscope.verify.failing import CannotRunError
    from syncscope.verify.processes import Processes, TimeIsUpError
    from syncscope.verify.results import Verification
    from syncscope.verify.runs import Runs, Settings
    from syncscope.verify.search import Search
    from syncscope.verify.spent import READING, Seconds

    spent, until = Seconds(), time.monotonic() + said["budget"]
    budget = said["budget"]
    places: tuple[Place, ...] = tuple(said["lines"])
    settings = Settings(
        budget,
        said["precision"],
        said["steps"],
        said["seed"],
        places,
        tuple(said["rules"]),
        said["apart"],
        int(said["copies"]),
    )
    texts = texts_of(said["before"]) if said["before"] else None
    named = f"{program} and {other.target}" if other else str(program)
    named = f"{named} as in {texts.commit} and as it is" if texts else named
    other = program if texts else other
    found = Verification(named)
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        recording = kineto.read(said["trace"]) if said["trace"] else None
        if not said["stale"] and other is None and not misplaced(program.arguments):
            with spent.on(READING):
                must_offer(program, found, settings.only, settings.rules, recording, budget)
        with Bar(found, budget, said["quiet"]) as tell, Processes(until, tell.warn, spent) as processes:
            search = Search(Runs(program, settings, processes, tell, found, other=other, texts=texts))
            try:
                _try(search, recording, said["stale"])
                if search.best is not None and not found.decided:
                    short = (
                        "the budget does not hold the turns that decide"
                        if search.is_short
                        else "the turns did not decide"
                    )
                    found.notes.append(f"{short}: {search.budget.shortage()}")
            except TimeIsUpError:
                search.close()
                search.told()
                if not found.decided:
                    found.notes.append(f"the budget was spent before everything was tried: {search.budget.shortage()}")
            except KeyboardInterrupt:
                found.interrupted = True
                search.told()
            found.enough = search.budget.likely
    except UserError as error:
        if isinstance(error, NothingToTryError) and error.said and said["format_"] == "terminal":
            echo(error.said, err=True)
        if isinstance(error, CannotRunError):
            echo(error.said, err=True)
            if error.code == USAGE:
                error.hint = misplaced(program.arguments) or error.hint
        found.error = error
    finally:
        found.spent = spent.seconds()
        for number, handler in before.items():
            signal.signal(number, handler)
    return found


def _try(search: Search, recording: Trace | None, stale: bool) -> None:
    from syncscope.verify import late
    from syncscope.verify.smallest import Fixes
    from syncscope.verify.two import compare

    if stale:
        late.measure(search)
    elif search.runs.other is not None:
        compare(search, recording)
    else:
        Fixes(search).run(recording)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def finished(found: Verification, said: dict[str, Any]) -> int:
    """Prints and writes what was found; the exit code.

    Raises:
        UserError: what ended the trial, now that who reads JSON has it.
    """
    import json

    from syncscope.cli._verified import patch, show
    from syncscope.linter.fixing import write
    from syncscope.tracers.places import LIBRARY, kind_of_file
    from syncscope.verify.plan import content_of
    from syncscope.verify.results import as_object

    found.patch = patch(found)
    text = json.dumps(as_object(found), indent=2)
    if said["format_"] == "json":
        echo(text)
    elif not found.error:
        show(found, written=said["write"] or bool(said["output"]))
    output = said["output"]
    if output and (not found.error or output.endswith(".json")):
        files.write(Path(output), (text + "\n" if output.endswith(".json") else found.patch).encode())
        empty = "" if found.patch or output.endswith(".json") else ", which is empty: nothing is kept"
        echo(f"wrote {output}{empty}", err=True)
    if found.error:
        raise found.error
    if said["write"] and not found.interrupted:
        if changed := [path for path, (old, _) in found.files.items() if content_of(path) != old]:
            raise UserError(
                f"{os.path.relpath(changed[0])} changed while it was tried: nothing is written",
                "`-o fixes.patch` keeps what is shown above as a patch, which `git apply --3way` may merge",
            )
        for path, (old, new) in found.files.items():
            if kind_of_file(path) == LIBRARY:
                echo(
                    f"{os.path.relpath(path)} is a library's, and is not written to: -o fixes.patch keeps the patch",
                    err=True,
                )
                continue
            write(path, new, old)
            echo(f"wrote {os.path.relpath(path)}", err=True)
    if not found.runs or (found.interrupted and found.ratio is None and found.values is None):
        echo("interrupted before anything was known", err=True)
    return 130 if found.interrupted else found.code
