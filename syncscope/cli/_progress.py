"""How far something is that takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from syncscope.cli._console import rewrites


class Progress:
    """How far a long run is, on a terminal only, and gone when it is done."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.shown = False
        self.last = 0.0

    def __enter__(self) -> Callable[[int, int], None]:
        return self.tick

    def tick(self, done: int, of: int) -> None:
        """Say it, ten times a second at most and not in the first half second."""
        now = time.monotonic()
        self.last = self.last or now + 0.4
        if rewrites(sys.stderr) and now - self.last > 0.1 and done < of:
            sys.stderr.write(f"\r\x1b[K{done} of {of} {self.what}")
            sys.stderr.flush()
            self.shown, self.last = True, now

    def __exit__(self, *_: object) -> None:
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
