"""Programs under `syncscope run`, in processes of their own, and what they recorded."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from syncscope import kineto
from syncscope.model.trace import Kind, Trace


def run(*arguments: str, folder: Path, **options: Any) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "syncscope", "run", "-o", "out", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300, check=False, **options)


def recorded(folder: Path) -> Trace:
    (file,) = (folder / "out").glob("*/*.pt.trace.json.gz")
    return kineto.read(file)


def steps(folder: Path) -> int:
    return int((recorded(folder).kind == Kind.STEP).sum())
