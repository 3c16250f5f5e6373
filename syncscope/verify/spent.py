"""What the time of a verification goes to: each second to one thing, so that together they are all there are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

READING, IMPORTS, LOOKING, VALUES, RECORDING = "reading", "imports", "looking", "values", "recording"
WARMING, TURNS, UNDOING, OTHER = "warming up", "turns", "undoing", "other"
SAID = {
    READING: "reading the sources",
    IMPORTS: "imports",
    LOOKING: "a first run that looks",
    VALUES: "comparing values",
    RECORDING: "a recording",
    WARMING: "until steps are alike",
    TURNS: "in turns",
    UNDOING: "taking files back",
    OTHER: "for all else",
}
"""In the order in which they come; what people read of each."""


class Seconds:
    """Seconds by what they went to. What is begun within something else is not that one's."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seconds: dict[str, float] = dict.fromkeys(SAID, 0.0)
        self._under_way = [OTHER]
        self._since = clock()

    @contextmanager
    def on(self, what: str) -> Iterator[None]:
        """Whatever is done meanwhile is this."""
        self._note()
        self._under_way.append(what)
        try:
            yield
        finally:
            self._note()
            self._under_way.pop()

    def seconds(self) -> dict[str, float]:
        """By what they went to, as far as anything did, in the order of `SAID`."""
        self._note()
        return {what: spent for what, spent in self._seconds.items() if spent}

    def _note(self) -> None:
        now = self._clock()
        self._seconds[self._under_way[-1]] += now - self._since
        self._since = now
