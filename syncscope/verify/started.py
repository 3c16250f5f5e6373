"""Which of the user's functions run in steps: a fix in one that only prepares, or is never called, cannot gain."""

from __future__ import annotations

import os
import sys
import threading
from types import CodeType, FrameType


class Started:
    """Hears which functions are called, as a debugger would; nothing is timed meanwhile."""

    def __init__(self) -> None:
        self._codes: set[CodeType] = set()

    def listen(self) -> None:
        """From now on, in this thread and in those that it starts."""
        self._hear = self._called
        sys.settrace(self._hear)
        threading.settrace(self._hear)

    def _called(self, frame: FrameType, event: str, argument: object) -> None:
        self._codes.add(frame.f_code)

    def boundary(self) -> None:
        """The first step has ended: of what was called before, only what is still under way counts, in any thread."""
        self._codes.clear()
        for last in sys._current_frames().values():
            frame: FrameType | None = last
            while frame is not None:
                self._codes.add(frame.f_code)
                frame = frame.f_back

    def lines(self) -> dict[str, list[int]] | None:
        """By file (links resolved) the lines of what ran after that; None where a debugger of the program's own listened."""
        if sys.gettrace() != self._hear:
            return None
        sys.settrace(None)
        from syncscope.tracers import places

        found: dict[str, set[int]] = {}
        for code in self._codes:
            if places.kind_of_file(code.co_filename) == places.USER:
                at = found.setdefault(os.path.realpath(code.co_filename), set())
                at.update(line for _, _, line in code.co_lines() if line)
        return {path: sorted(lines) for path, lines in found.items()}
