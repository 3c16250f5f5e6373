"""What becomes of a recording as its program ends: it is written and shown, and what fails is told in a line."""

from __future__ import annotations

import contextlib
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syncscope.cli import _no_device
from syncscope.cli._console import echo
from syncscope.cli._no_device import HowMade
from syncscope.errors import UserError

if TYPE_CHECKING:
    from syncscope.model.trace import Trace

CRASHES = [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL]  # no one else's, as SIGTERM is


def made_of(target: str, arguments: Sequence[str], module: bool, device: str | None) -> HowMade:
    """How a recording of this program is made."""
    return HowMade(shlex.join([*["-m"] * module, target, *arguments]), device, "" if module else target)


def note(stream: Any, line: str) -> None:
    """A line beside what the program prints."""
    with contextlib.suppress(OSError, ValueError):
        stream.write(f"syncscope: {line}\n")
        stream.flush()


def rescued(folder: Path, output: Path, quiet: bool, number: int, target: str, made: HowMade) -> bool:
    """Whether what a program had recorded when it was killed, by the signal of that `number`, could be kept."""
    from syncscope.tracers import recovery

    try:
        trace = recovery.recover(folder)
    except Exception as error:  # cut off anywhere, and the exit code stays the program's
        _say("what was recorded cannot be read", error, folder)
        return False
    if trace is None:
        return True
    if number in CRASHES:
        trace.meta["ended_by"] = signal.Signals(number).name
    kept, show = written(trace, target, output, quiet, made)
    show()
    if not kept:
        held = next(folder.glob("*.records"), folder)
        note(sys.stderr, f"what was recorded is kept: `syncscope report {held}` shows it, with -o a page elsewhere")
    return kept


def _say(what: str, error: BaseException, where: Path | None = None) -> None:
    """One line about what failed, and where the recording lies."""
    if isinstance(error, UserError):
        why = f"{error.message}; {error.hint}" if error.hint else error.message
    else:
        why = f"{type(error).__name__}: {error}".removesuffix(": ")
    lies = f"; the recording lies in {where}" if where else ""
    with contextlib.suppress(OSError):  # nobody reads our standard error any more
        echo(f"syncscope: {what}: {' '.join(why.split())}{lies}", err=True)


def written(trace: Trace, target: str, output: Path, quiet: bool, made: HowMade) -> tuple[bool, Callable[[], None]]:
    """Writes the recording; whether it is, and what prints its table, to stderr, since the program may be part of a pipe.

    Nothing that fails here may change how the program goes on, or its exit code.
    """
    from syncscope.exporters import tensorboard

    if not len(trace):
        return True, partial(_nothing, trace.meta.get("ended_by", ""), made)
    if made.device == "ocl":
        trace.meta["stands_for"] = "cuda"
    files: list[Path] = []
    failed: Exception | None = None
    try:
        files = tensorboard.save(trace, output, tensorboard.of_rank(Path(target).name.partition(".")[0], trace))
    except Exception as error:
        failed = error

    def show() -> None:
        try:
            if not quiet:
                _show(trace, made)
            for file in files:
                echo(f"wrote {file}", err=True)
        except (Exception, SystemExit) as error:  # rich leaves by SystemExit where a pipe is closed
            _say("the report could not be made", error, files[0] if files else None)
        if failed is not None:
            _say("the recording could not be written", failed)

    return failed is None, show


def _nothing(error: str, made: HowMade) -> None:
    """That there is nothing, and, of a program that computes and that no error ended, what to change."""
    ended = f" before {error} ended the program" if error else ""
    echo(f"syncscope: nothing to record: no step, no sync, no work of a device{ended}", err=True)
    if not error and (made.device or "torch" in sys.modules):
        _no_device.tell(made)


def _show(trace: Trace, made: HowMade) -> None:
    """The table, or why there is none."""
    import numpy as np

    import syncscope
    from syncscope.cli import _dry, _next
    from syncscope.cli._console import console
    from syncscope.exporters import _tried, terminal
    from syncscope.model.trace import DEVICE, Kind

    if trace.meta.get("dry"):
        _dry.tell(trace, made.command)
        out = console(stderr=True)
        for row in _tried.rows(trace.meta.get("verified"), out.width):
            out.print(row)
    elif not np.isin(trace.kind, DEVICE).any():
        echo("syncscope: no device worked, so nothing waited for one", err=True)
        if not trace.meta.get("ended_by"):
            _no_device.tell(made)
    elif not (trace.kind == Kind.STEP).any() and (ended := _ended_early(trace)):
        echo(f"syncscope: {ended}", err=True)
        echo(" `syncscope report` shows what came before, from the file below", err=True)
    else:
        command = f"--device {made.device} {made.command}" if made.device else made.command
        trace.meta["command"] = command  # the file is written already
        out, report = console(stderr=True), syncscope.report(trace)
        out.print(terminal.render(report, out.width))
        if then := _next.settles(report, made.command, made.device):
            echo(then, err=True)


def _ended_early(trace: Trace) -> str:
    """What ended the recording or the program, in words; "" where nothing did."""
    unknown = "so nothing is said of what one costs"
    if why := trace.meta.get("ended_early"):
        return f"the recording ended before the first step did, {unknown}: {why}"
    error = trace.meta.get("ended_by")
    return f"{error} ended the program before its first step, {unknown}" if error else ""
