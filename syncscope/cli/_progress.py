"""How far something is that takes long."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic

from syncscope.cli._console import echo, rewrites

OFTEN, SELDOM = 0.1, 10.0  # seconds between two looks at a line that is written over, and between two lines of a log


class Progress:
    """How far a long run is: on a terminal a line that is written over, and gone when it is done. In a log a line every ten
    seconds, where `logged` names the command that may speak there."""

    def __init__(self, what: str, logged: str = "") -> None:
        self.what, self.logged = what, logged
        self.shown = self.told = False  # on a terminal, in a log
        self.of = 0
        self.last = 0.0

    def __enter__(self) -> Callable[[int, int], None]:
        self.last = monotonic()
        return self.tick

    def tick(self, done: int, of: int) -> None:
        """Say it, on a terminal not in the first half second."""
        now, seen, self.of = monotonic(), rewrites(sys.stderr), of
        first = OFTEN if self.shown else 5 * OFTEN
        if done >= of or now - self.last < (first if seen else SELDOM):
            return
        if seen:
            sys.stderr.write(f"\r\x1b[K{done} of {of} {self.what}")
            sys.stderr.flush()
            self.shown = True
        elif self.logged:
            self._log(done)
        self.last = now

    def _log(self, done: int) -> None:
        echo(f"{self.logged}: {done:,} of {self.of:,} {self.what}", err=True)
        self.told = True

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if self.told and error is None:  # else the last line of a log reads as if the rest had been left out
            self._log(self.of)
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
