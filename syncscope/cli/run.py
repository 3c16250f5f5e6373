"""syncscope run: an unmodified program, recorded from before its first import."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from syncscope import interpreters
from syncscope.cli._console import echo, rewrites
from syncscope.cli._duration import Duration
from syncscope.cli._run_end import made_of, note, rescued, written
from syncscope.cli._script import USAGE, ProgramCommand, misplaced, script
from syncscope.errors import UserError

if TYPE_CHECKING:
    from syncscope.model.trace import Trace
    from syncscope.verify.in_the_run import InTheRun

DRY_STEPS = 101  # that are recorded on a CPU, the first and a hundred
INSIDE = "_SYNCSCOPE_RUN"  # names the folder of the recording to the process that runs the program


@click.command(
    cls=ProgramCommand,
    short_help="Record a program: which lines make the host wait.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("-m", "module", metavar="MODULE", help="Run a module, as `python -m` does.")
@click.option("-o", "--output", default="runs", show_default=True, metavar="DIR", help="Folder for the recordings.")
@click.option(
    "--device",
    metavar="ocl|cpu",
    type=click.Choice(["ocl", "cpu"]),
    help="Give a script that asks for cuda this device instead.",
)
@click.option("--wait", default=0, metavar="N", help="Steps to let pass first.")
@click.option("--warmup", default=0, metavar="N", help="Then steps to let pass with the hooks in place.")
@click.option(
    "--active", type=int, metavar="N", help="Steps to record; with --wait or --warmup alone, all that follow."
)
@click.option("--repeat", default=1, metavar="N", help="How often; 0 is to the end.")
@click.option("--whole", is_flag=True, help="Record every step. Without a number it chooses some that say enough.")
@click.option("--shapes", is_flag=True, help="Note what each operator was given, for `syncscope roofline`.")
@click.option(
    "--operators",
    is_flag=True,
    help="Record modules, and on CUDA operators of the CPU: dearer, and no saving needs them.",
)
@click.option("--memory", is_flag=True, help="Note what is allocated on the device, by line: memory over time.")
@click.option(
    "--try",
    "tries",
    is_flag=True,
    help="Then try the safe fixes in the run: its next steps, made again and again with and without. It goes on as written. "
    "A program of few steps needs --active 12, too, so that some are left.",
)
@click.option("--unsafe-fixes", is_flag=True, help="With --try: the unsafe ones, too.")
@click.option(
    "--try-budget", type=Duration(), default="30s", show_default=True, help="With --try: the time that it may take."
)
@click.option("--quiet", is_flag=True, help="No live line and no table.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[SCRIPT] [ARGUMENTS...]")
def command(
    module: str | None,
    output: str,
    device: str | None,
    wait: int,
    warmup: int,
    active: int | None,
    repeat: int,
    whole: bool,
    shapes: bool,
    operators: bool,
    memory: bool,
    tries: bool,
    unsafe_fixes: bool,
    try_budget: float,
    quiet: bool,
    arguments: tuple[str, ...],
) -> int:
    """Run a program, record which lines make the host wait, and print the table at its end.

    \b
    syncscope run train.py --epochs 1
    syncscope run -m package.train --epochs 1
    syncscope run --device ocl train.py         look for waits without a GPU
    syncscope run --active 20 --wait 10 train.py
    syncscope run --try train.py                is a fix worth it? It is tried in the run, which then goes on

    Options stand before the program; what follows it is the program's, and so is the exit code. Where it is interrupted,
    crashes or is killed, what was recorded is kept.
    """
    if not module and not arguments:
        raise UserError("no program to run", "syncscope run train.py, or syncscope run -m package.train")
    if tries and (whole or memory or repeat != 1 or (wait + warmup and active is None)):
        raise UserError(
            "--try begins when the recording is over, and this one has no end before the program's",
            "leave out --whole, --memory and --repeat; with --wait or --warmup give --active, too",
        )
    if tries and (ranks := os.environ.get("WORLD_SIZE") or "1") != "1":
        raise UserError(
            f"--try makes steps again as often as it needs, and this is one of {ranks} ranks, which wait for one another",
            "try it in a run of one rank, with WORLD_SIZE=1",
        )
    if unsafe_fixes and not tries:
        raise UserError("--unsafe-fixes says what --try is to try", "add --try")
    target, rest = (module, arguments) if module else (arguments[0], arguments[1:])
    if not module:
        script(target, "run")
    output = os.path.abspath(output)  # the program may go elsewhere
    if device == "cpu" and active is None and not (wait + warmup or whole or memory or tries):
        active = DRY_STEPS  # where nothing is timed no step is left out for it: rounds of a loop may be long
    schedule: dict[str, Any] = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat}
    if INSIDE in os.environ:
        folder = Path(os.environ.pop(INSIDE))
        return _record(
            target,
            rest,
            bool(module),
            folder,
            Path(output),
            device,
            schedule | {"whole": whole, "record_shapes": shapes, "operators": operators, "memory": memory},
            quiet,
            _Trying(try_budget, unsafe_fixes) if tries else None,
        )
    anew = not os.path.exists(output)
    folder = Path(tempfile.mkdtemp(prefix="syncscope-run-", dir=_writable(output)))
    options = [f"--{name}={value}" for name, value in {**schedule, "device": device}.items() if value is not None]
    options += ["--whole"] * whole + ["--shapes"] * shapes + ["--operators"] * operators + ["--memory"] * memory
    options += [f"--try-budget={try_budget}", "--try"] * tries + ["--unsafe-fixes"] * unsafe_fixes
    options += [f"--output={output}", *(["--quiet"] if quiet else []), *(["-m", target] if module else ["--", target])]
    saved = True
    try:
        status = _supervised([*options, *rest], folder)
        if status < 0 or any(folder.iterdir()):
            saved = False
            saved = rescued(folder, Path(output), quiet, -status, target, made_of(target, rest, bool(module), device))
    finally:
        if saved:
            shutil.rmtree(folder, ignore_errors=True)
            if anew:
                with contextlib.suppress(OSError):  # there is something in it
                    os.rmdir(output)
    if status < 0:
        _die_as(-status)
    if status == USAGE and (hint := misplaced(rest)):
        echo(f"syncscope: {hint}", err=True)
    return status


def _writable(output: str) -> Path:
    """The output folder, there and writable: better said before the program runs for an hour."""
    try:
        Path(output).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=output):
            return Path(output)
    except OSError as error:
        raise UserError(f"{output} cannot be written: {error.strerror}", "choose another folder with -o") from None


def _supervised(arguments: list[str], folder: Path) -> int:
    """Runs the program in a process of its own, so that somebody is left when it is killed; its exit code, or minus its
    signal. A fresh interpreter, not a fork: who knows which threads and drivers a `sitecustomize` has begun in this one."""
    command = interpreters.command("from syncscope.cli import main; main()", "run", *arguments)
    child = subprocess.Popen(command, env={**os.environ, INSIDE: str(folder)})
    passed_on = [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT]
    before = {number: signal.signal(number, lambda n, _: child.send_signal(n)) for number in passed_on}
    if sys.stdin is not None and sys.stdin.isatty():  # the terminal tells the child as well
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _die_as(number: int) -> None:
    """Ends as the program did, so that the shell says the same of us."""
    sys.stdout.flush()
    sys.stderr.flush()
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


class _Trying(NamedTuple):
    """What `--try` is to do: for how many seconds, and whether unsafe fixes, too."""

    budget: float
    unsafe: bool


def _record(
    target: str,
    arguments: tuple[str, ...],
    module: bool,
    folder: Path,
    output: Path,
    device: str | None,
    schedule: dict[str, Any],
    quiet: bool,
    trying: _Trying | None,
) -> int:
    """In the child: the program under a recording; then the files and the table."""
    from syncscope.tracers import live, program, redirect
    from syncscope.tracers.session import Session

    me = os.getpid()
    made = made_of(target, arguments, module, device)
    shown: list[Callable[[], None]] = []  # what is printed once the program is done

    def keep(trace: Trace) -> bool:
        if trial is not None:
            trace.meta["verified"] = as_object(trial.finish())
        kept, show = written(trace, target, output, quiet, made)
        shown[:] = [show] if kept else []  # else whoever started this process tries again, and tells
        return kept

    begun = False  # what cannot be recorded at all is better said than run for an hour

    def failed(error: UserError) -> None:
        if not begun:
            raise error
        note(sys.stderr, f"{error.message}; {error.hint}" if error.hint else error.message)

    def tell(error: BaseException) -> None:
        program.report(error)
        session.ended_by = type(error).__name__
        if not device and (hint := program.without_gpu(str(error))):
            echo(f" hint: {hint}", err=True)
        elif device == "ocl" and program.lacks(error):
            hint = f"syncscope run --device cpu {made.command}"
            echo(f" hint: `{hint}` needs no device: it counts the lines that would wait, without their cost", err=True)

    session = Session(folder=folder, at_end=True, on_trace=keep, on_failure=failed, **schedule)
    trial: InTheRun | None = None
    tried: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    if trying is not None:
        from syncscope.verify.in_the_run import InTheRun
        from syncscope.verify.request import Program
        from syncscope.verify.results import as_object

        what = Program(target, arguments, module, device)
        say = (lambda line: None) if quiet else partial(note, sys.stderr)
        trial = InTheRun(what, trying.budget, trying.unsafe, lambda: session.is_over, session.pause, say)
        tried = trial.installed()
    line = live.LiveLine(session) if rewrites(sys.stderr) and not quiet else contextlib.nullcontext()
    with redirect.to(device), session, line, tried:
        begun = True
        code = program.run(target, arguments, module=module, tell=tell)
        if os.getpid() != me:  # a child of the program that came back this way
            return code
    for show in shown:
        show()
    if not session.traces and not session.failed:
        passed, before = max(0, session.count), session.wait + session.warmup
        why = f": it let {before} pass first, and there were {passed}" if before else ""
        echo(f"syncscope: the program ended before the first recorded step{why}", err=True)
    return code
