"""Pythons that we start: none of them imports from the folder in which it is started, which may be a stranger's.

Python puts that folder first for `-c` and `-m`, and a `typing.py` that lies there would run before anything of ours. Its own
switch against that, `-P`, would be seen by a program that runs there, and passed on to what it starts.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SAFE = "PYTHONSAFEPATH"
_ROOT = str(Path(__file__).parents[1])


def command(code: str, *arguments: str) -> list[str]:
    """What starts an interpreter like this one that runs `code`, for which `syncscope` can be imported."""
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing does
    own = os.path.dirname(sys.executable)  # as for the command itself, and no folder of modules
    first = "" if sys.flags.safe_path else f"sys.path[0] = {own!r}; "
    begin = f"import sys; {first}sys.path.append({_ROOT!r}); import syncscope; sys.path.pop(); "
    return [sys.executable, *flags, "-c", begin + code, *arguments]


@contextlib.contextmanager
def safe_path() -> Iterator[None]:
    """While workers are started by others (`multiprocessing` spawns them with `-c`): they are told so by the environment."""
    before = os.environ.get(SAFE)
    os.environ[SAFE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE]
        else:
            os.environ[SAFE] = before
