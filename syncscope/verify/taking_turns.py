"""Runs side by side, of which one goes on at a time: what a machine does to one for a second, it does to all.

A machine is slower for some tenths of a second and then faster again, by more than most rewrites give. So versions do not run
one after another but a few steps each, in a circle. Whoever goes on leaves an idle device to the next, so that the first step
of a block does not count.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from syncscope.verify.notified import Ears

BLOCK = 5  # steps in a row
ENDED = 0.02  # s between two looks whether a run has ended without a word


class Turn(NamedTuple):
    """In the process of a run: when it may go on, and that others may."""

    go: int
    told: int

    def wait(self) -> None:
        """Until it is this run's turn; where nobody is left who could say so, it ends."""
        if not os.read(self.go, 1):
            os._exit(70)

    def pass_on(self) -> None:
        """The others go on, once the device has nothing left to do."""
        torch = sys.modules.get("torch")
        if getattr(getattr(torch, "cuda", None), "_initialized", False):
            sys.modules["torch"]._C._cuda_synchronize()
        elif "syncscope.kernels" in sys.modules:
            sys.modules["torch"].ocl.synchronize()
        os.write(self.told, b".")
        self.wait()


class Runner(NamedTuple):
    """A run, as the process sees it that has started it."""

    child: int
    go: int
    told: int

    def block(self, ears: Ears) -> int | None:
        """Lets it make its next block of steps, and hears what it asks meanwhile; its exit code, if it has ended."""
        self._signal(signal.SIGCONT)
        with suppress(BrokenPipeError):
            os.write(self.go, b".")
        while True:
            if ears.wait(self.told, ENDED) and os.read(self.told, 1):
                # its loader's workers, too: batches that they make meanwhile would be for free
                self._signal(signal.SIGSTOP)
                return None
            ended, status = os.waitpid(self.child, os.WNOHANG)  # what it has started may keep the pipe open
            if ended:
                os.close(self.go)
                os.close(self.told)
                return os.waitstatus_to_exitcode(status)

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.child, number)


def conduct(runners: Sequence[Runner], ears: Ears) -> list[int]:
    """Lets each run in its turn until all have ended; their exit codes."""
    codes: dict[int, int] = {}
    while len(codes) < len(runners):
        for number, runner in enumerate(runners):
            if number not in codes and (code := runner.block(ears)) is not None:
                codes[number] = code
    return [codes[number] for number in range(len(runners))]
