"""Programs that prepare side by side and then measure one after the other, each in a process of its own.

Importing torch, making a network and compiling it take longer than most of what is measured. A program calls `wait_for_turn()`
once it is ready; while it measures, the others of its batch sleep.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

READY = "SYNCSCOPE_BENCHMARK_READY"  # the descriptor through which a program says that it is
LAST_WORDS = 400  # characters of what a program that failed wrote


def wait_for_turn() -> None:
    """Returns when the others are ready, and it is this program's turn; at once where nobody gives turns."""
    if READY in os.environ:
        os.write(int(os.environ.pop(READY)), b".")
        sys.stdin.readline()


def results(commands: Sequence[list[str]], at_once: int, limit: float) -> Iterator[dict[str, Any] | str]:
    """What each prints last, read as JSON, in order; a text says why there is none.

    `limit`: seconds that a batch has to prepare, and each of it to measure.
    """
    for first in range(0, len(commands), at_once):
        with contextlib.ExitStack() as stack:
            batch = [stack.enter_context(_Program(command)) for command in commands[first : first + at_once]]
            until = time.monotonic() + limit
            for program in batch:
                program.prepared(until - time.monotonic())
            for program in batch:
                yield program.measured(limit)


class _Program:
    def __init__(self, command: list[str]) -> None:
        self.command = command

    def __enter__(self) -> _Program:
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self.ready, theirs = os.pipe()
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=self.out,
            stderr=self.err,
            pass_fds=[theirs],
            env={**os.environ, READY: str(theirs)},
        )
        os.close(theirs)
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.ready)
        for file in (self.process.stdin, self.out, self.err):
            if file is not None:
                with contextlib.suppress(OSError):
                    file.close()

    def prepared(self, seconds: float) -> None:
        """Returns when it is, or has ended, or the time is over."""
        select.select([self.ready], [], [], max(0.0, seconds))

    def measured(self, seconds: float) -> dict[str, Any] | str:
        """Its result."""
        if not select.select([self.ready], [], [], 0)[0]:
            return "it was not ready in time"
        try:
            self.process.communicate(b"\n", timeout=seconds)
        except subprocess.TimeoutExpired:
            return "it did not end in time"
        self.out.seek(0)
        self.err.seek(0)
        try:
            found: dict[str, Any] = json.loads(self.out.read().splitlines()[-1])
        except (ValueError, IndexError):
            return (
                self.err.read().decode(errors="replace").strip()[-LAST_WORDS:] or f"exit code {self.process.returncode}"
            )
        return found
