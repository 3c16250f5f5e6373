"""Which of the user's lines run in steps: a fix of one that only prepares, or stands in an arm never taken, cannot gain."""

from __future__ import annotations

import ast
import os
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

KNOWN = 20_000  # lines of a function that ran in a row and were all known: it is no longer listened to


class Started:
    """Hears which functions are called, and from the end of the first step on which of their lines run, as a debugger would;
    nothing is timed meanwhile."""

    def __init__(self) -> None:
        self._ran: dict[CodeType, set[int]] = {}
        self._left: dict[CodeType, int] = {}  # lines until a function is known
        self._own: dict[str, bool] = {}  # by file: whether it is the user's
        self._hears_lines = False
        self._under_way: set[CodeType] = set()  # at the end of the first step

    def listen(self) -> None:
        """From now on, in this thread and in those that it starts."""
        self._hear = self._called
        sys.settrace(self._hear)
        threading.settrace(self._hear)

    def _called(self, frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        if code not in self._ran:
            self._ran[code] = {code.co_firstlineno}
        return self._line if self._hears_lines and self._left.get(code, 1) > 0 and self._is_own(code) else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        ran = self._ran.setdefault(code, {code.co_firstlineno})
        if event == "line" and frame.f_lineno not in ran:
            ran.add(frame.f_lineno)
            self._left[code] = KNOWN
        self._left[code] = left = self._left.get(code, KNOWN) - 1
        if left <= 0:
            frame.f_trace_lines = False
        return self._line

    def boundary(self) -> None:
        """The first step has ended: of what was called before, only what is still under way counts, in any thread, and of
        that also what it may come to after many steps: all but the arms that it passes by."""
        self._ran.clear()
        self._hears_lines = True
        for last in sys._current_frames().values():
            frame: FrameType | None = last
            while frame is not None:
                code = frame.f_code
                self._ran[code] = {code.co_firstlineno, frame.f_lineno}
                self._under_way.add(code)
                if self._is_own(code) and frame.f_trace is None:
                    frame.f_trace = self._line
                frame = frame.f_back

    def lines(self) -> dict[str, list[int]] | None:
        """By file (links resolved) the lines of what ran after that; None where a debugger of the program's own listened."""
        if sys.gettrace() != self._hear:
            return None
        sys.settrace(None)
        found: dict[str, set[int]] = {}
        for code, ran in self._ran.items():
            if self._is_own(code):
                at = found.setdefault(os.path.realpath(code.co_filename), set())
                at |= ran
                if code in self._under_way:
                    at |= {line for _, _, line in code.co_lines() if line} - _passed_by(code.co_filename, ran)
        return {path: sorted(lines) for path, lines in found.items()}

    def _is_own(self, code: CodeType) -> bool:
        from syncscope.tracers import places

        path = code.co_filename
        if path not in self._own:
            self._own[path] = places.kind_of_file(path) == places.USER
        return self._own[path]


def _passed_by(path: str, ran: set[int]) -> set[int]:
    """The lines of arms that were not taken where their conditions were asked."""
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return set()
    arms = (
        arm
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and node.lineno in ran
        for arm in (node.body, node.orelse)
    )
    lines = {line for arm in arms for one in arm for line in range(one.lineno, (one.end_lineno or one.lineno) + 1)}
    return lines - ran
