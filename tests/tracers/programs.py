"""Programs under `syncscope run`, in processes of their own, and what they recorded."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from warm import Python

from syncscope import kineto
from syncscope.cli.run import INSIDE
from syncscope.model.trace import Kind, Trace


def run(*arguments: str, folder: Path, **options: Any) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "syncscope", "run", "-o", "out", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300, check=False, **options)


def run_in(forked: Python, *arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """The same of a fork that has torch, as the process in which `syncscope run` has the program run: for programs that end
    by themselves, in which it does not matter who imported torch, and ours."""
    (folder / "recording").mkdir(exist_ok=True)
    inside = {INSIDE: str(folder / "recording")}
    command = ("-c", "from syncscope.cli import main; main()", "run", "-o", "out", *arguments)
    return forked(*command, env=os.environ | inside, folder=folder, ours=True)


def recorded(folder: Path) -> Trace:
    (file,) = (folder / "out").glob("*/*.pt.trace.json.gz")
    return kineto.read(file)


def steps(folder: Path) -> int:
    return int((recorded(folder).kind == Kind.STEP).sum())
