"""What the tables of a report share: the columns that there is room for, and notes below a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from rich.console import Console
from rich.text import Text

from syncscope.exporters._narrow import narrowed

MARGIN = "    "
Name = TypeVar("Name", bound=str)


def fitting(columns: Sequence[tuple[Name, int, int]], width: int) -> list[tuple[Name, int, int]]:
    """The columns that fit, of each its name, its width and how soon it is left out: 0 never, the largest number first."""
    kept = list(columns)
    for rank in (4, 3, 2, 1):
        if sum(size for _, size, _ in kept) > width:
            kept = [column for column in kept if column[2] != rank]
    return kept


def note(said: Text | str, width: int, margin: str = MARGIN) -> Iterator[Text]:
    """Words below a row, dim where they have no style of their own, over as many lines as they take."""
    text, room = Text(said, "dim") if isinstance(said, str) else said, width - len(margin)
    yield from (Text.assemble(margin, part) for part in narrowed(text, room).wrap(Console(), room))
