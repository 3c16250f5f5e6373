"""A line on the terminal while a program runs: steps, time of a step, reads per step, how busy the device is."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any, TextIO, cast

from syncscope.tracers.hooks.listeners import Listener, Record, listeners
from syncscope.tracers.opencl import compiled
from syncscope.tracers.session import Session

EVERY = 0.5  # s
ERASE = "\r\x1b[K"


class LiveLine:
    """Rewrites one line of stderr from a thread of its own; silent where stderr is no terminal."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._reads = 0
        self._listener = Listener(read=self._count)
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._stdout: TextIO | None = None
        self._shown = False

    def __enter__(self) -> LiveLine:
        if sys.stderr.isatty():
            listeners.add(self._listener)
            if sys.stdout.isatty():
                self._stdout, sys.stdout = sys.stdout, cast(TextIO, _Clearing(sys.stdout, self))
            self._thread = threading.Thread(target=self._run, name="syncscope live line", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._over.set()
            self._thread.join()
            listeners.remove(self._listener)
            self.clear()
            if self._stdout is not None:
                sys.stdout = self._stdout

    def _count(self, record: Record) -> None:
        self._reads += 1

    def _run(self) -> None:
        then = (time.monotonic_ns(), self._session.count, 0, 0)
        while not self._over.wait(EVERY):
            now = (time.monotonic_ns(), self._session.count, self._reads, compiled.counts()[6])
            sys.stderr.write(ERASE + text(then, now))
            sys.stderr.flush()
            self._shown = True
            then = now

    def clear(self) -> None:
        """Makes room for what the program prints."""
        if self._shown:
            self._shown = False
            sys.stderr.write(ERASE)
            sys.stderr.flush()


class _Clearing:
    """The program's standard output, which takes the line away before it writes."""

    def __init__(self, stream: TextIO, line: LiveLine) -> None:
        self._stream, self._line = stream, line

    def write(self, text: str) -> int:
        self._line.clear()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def text(then: tuple[int, int, int, int], now: tuple[int, int, int, int]) -> str:
    """The line for what happened between two moments: (ns, steps, reads, ns of device work)."""
    wall, steps, read, busy = (b - a for a, b in zip(then, now, strict=True))
    parts = [f"syncscope: step {now[1]}"]
    if steps:
        parts += [f"{wall / steps / 1e6:.4g} ms/step", f"{read / steps:.3g} syncs/step"]
    elif read:
        parts.append(f"{read} syncs")
    if now[3]:
        parts.append(f"device {min(1.0, max(0, busy) / wall):.0%} busy")
    return " · ".join(parts)
