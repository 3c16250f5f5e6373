"""Which lines of a file become which, where some are rewritten."""

from __future__ import annotations

from difflib import SequenceMatcher


class LineMap:
    """The pieces of two versions of a file: lines that are in both, and what stands in one for what is in the other."""

    def __init__(self, before: bytes, after: bytes) -> None:
        old, new = before.splitlines(), after.splitlines()
        self._old: list[int] = []
        self._new: list[int] = []
        self._first: list[int] = []  # lines before, at which the pieces begin
        for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if kind == "equal":
                for at in range(b - a):
                    self._add(a + at, 1, 1)
            else:
                self._add(a, b - a, d - c)

    def _add(self, first: int, old: int, new: int) -> None:
        piece = len(self._first)
        self._first.append(first + 1)
        self._old += [piece] * old
        self._new += [piece] * new

    def piece_before(self, line: int) -> int:
        """The piece of a line (from 1) of the file as it was; -1 where there is no such line."""
        return self._old[line - 1] if 0 < line <= len(self._old) else -1

    def piece_after(self, line: int) -> int:
        """The piece of a line of the rewritten file."""
        return self._new[line - 1] if 0 < line <= len(self._new) else -1

    def line_before(self, line: int) -> int:
        """Where a line of the rewritten file comes from: the first line of its piece."""
        piece = self.piece_after(line)
        return self._first[piece] if piece >= 0 else line
