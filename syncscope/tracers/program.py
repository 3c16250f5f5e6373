"""Runs somebody's script as `python script.py` would, and comes back with its exit code."""

from __future__ import annotations

import builtins
import io
import os
import re
import runpy
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

from syncscope.errors import UserError

HERE = str(Path(__file__).parents[1]) + os.sep
DEVICE = os.path.join(HERE, "kernels", "")
NO_GPU = re.compile(r"not compiled with CUDA|No (CUDA|HIP) GPUs|no NVIDIA driver|cuda\.is_available\(\) is False")
OURS = (HERE, "<frozen runpy>", "<frozen importlib")


def run(
    target: str, arguments: Sequence[str], *, module: bool, tell: Callable[[BaseException], None] | None = None
) -> int:
    """Runs a script, or a module as with `-m`, as `__main__`; its exit code. What it raises is printed as Python would,
    without our frames, or given to `tell`.

    Raises:
        UserError: there is no such script.
    """
    sys.argv = [target, *arguments]
    if not sys.flags.safe_path:  # there stands where we come from
        sys.path[0] = os.getcwd() if module else str(Path(target).resolve().parent)
    try:
        if module:
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            code = compiled(target)
            path = code.co_filename  # where it lies, however the program changes folders
            main: dict[str, Any] = sys.modules["__main__"].__dict__
            main.clear()
            main |= {"__name__": "__main__", "__file__": path, "__builtins__": builtins, "__spec__": None}
            main |= {"__doc__": None, "__loader__": SourceFileLoader("__main__", path), "__package__": None}
            main |= {"__cached__": None, "__annotations__": {}}
            exec(code, main)
    except SystemExit as stop:
        return exit_code(stop)
    except KeyboardInterrupt as stop:
        _once(signal.SIGINT)
        report(stop)
        return 130
    except UserError:
        raise
    except BaseException as error:  # the program's own; it is told as Python tells it
        (tell or report)(error)
        return 1
    return 0


def _once(number: int) -> None:
    """A second Ctrl-C within a second is the first: who signals a group reaches us, and our parent, who passes it on."""
    first = time.monotonic()

    def again(*_: object) -> None:
        if time.monotonic() - first > 1:
            raise KeyboardInterrupt

    signal.signal(number, again)


def without_gpu(said: str) -> str:
    """A hint for a program that asked for a GPU where there is none, by what it said when it failed; empty for any other."""
    return (
        "torch finds no GPU here: --device ocl has the program run on the processor as a device"
        if NO_GPU.search(said)
        else ""
    )


def lacks(error: BaseException) -> bool:
    """Whether a program was ended by our own device, which has not what it was asked for."""
    frames = traceback.extract_tb(error.__traceback__)
    return isinstance(error, NotImplementedError) and bool(frames) and frames[-1].filename.startswith(DEVICE)


def compiled(path: str) -> CodeType:
    """The code of a script.

    Raises:
        UserError: it cannot be read.
    """
    try:
        path = os.path.abspath(path)
        with io.open_code(path) as file:
            return compile(file.read(), path, "exec", dont_inherit=True)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", "give the script as you give it to python") from None


def exit_code(stop: SystemExit) -> int:
    """What the operating system gets to see of `sys.exit(x)`."""
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    print(stop.code, file=sys.stderr)
    return 1


def report(error: BaseException) -> None:
    """Prints the traceback that Python would print of the program alone: ours, and what leads to us, is not in it.

    A module that cannot be found was never begun: that is one line, as from `python -m`.
    """
    told = traceback.TracebackException.from_exception(error)
    if told.stack and told.stack[-1].filename == "<frozen runpy>" and isinstance(error, ImportError):
        print(f"{sys.executable}: {error}", file=sys.stderr)
        return
    todo: list[traceback.TracebackException | None] = [told]
    while todo:
        if one := todo.pop():
            last = one.stack[-1] if one.stack else None
            is_bug = last is not None and last.filename.startswith(HERE) and not (last.line or "").startswith("raise ")
            # A bug is ours to show; what we say on purpose is said to the user, and who presses Ctrl-C may meet us at work.
            if not is_bug or isinstance(error, (SyntaxError, KeyboardInterrupt)):
                one.stack = traceback.StackSummary.from_list([f for f in one.stack if not f.filename.startswith(OURS)])
            todo += [one.__cause__, one.__context__, *(one.exceptions or ())]
    told.print()
