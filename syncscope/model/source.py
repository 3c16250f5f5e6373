"""Where something stands in a source file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

LINE_END = re.compile(rb"\r\n|\r|\n")  # what `ast` counts


@lru_cache(maxsize=2)  # one file is asked for by the linter, the inference and the rewrites, in turns
def line_starts(code: bytes) -> tuple[int, ...]:
    """The offset at which each line begins."""
    return (0, *[end.end() for end in LINE_END.finditer(code)])


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A file and a line (the first is 1): the key on which lint and trace meet."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The bytes [start, end) of a source file."""

    start: int
    end: int

    def overlaps(self, other: Span) -> bool:
        """Whether an edit of one could disturb the other; two insertions at one point do."""
        return (self.start < other.end and other.start < self.end) or self.start == other.start
