"""A table as wide as the terminal: what has no room is left out and named, so that no word and no figure is cut."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

GAP = 2  # columns of the terminal between two of a table
PLACE = 12  # columns that words keep, as of a path or of a sentence, where there is little room


def fitted(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    words: Sequence[bool],
    width: int,
    spare: Sequence[Sequence[int]] = (),
    styles: Sequence[str] = (),
) -> tuple[Table, list[str]]:
    """The table, and the heads of the `spare` columns for which there is no room, the first to go first. Figures stand at the
    right, and what holds `words` gives way: prose goes on below itself, a path loses its outer folders."""
    from rich.table import Table

    columns = [[row[n] for row in rows] for n in range(len(heads))]
    whole = [max(map(len, (head, *cells))) for head, cells in zip(heads, columns, strict=True)]
    least = [max(map(len, (*head.split(), *cells, ""))) for head, cells in zip(heads, columns, strict=True)]
    kept, gone = [*range(len(heads))], list[str]()

    def left(sizes: Sequence[int]) -> int:
        """Columns of the terminal that these sizes leave."""
        taken: int = sum(sizes[n] + GAP for n in kept)
        return width - taken

    for some in spare:
        if left([min(size, PLACE) if gives else size for size, gives in zip(least, words, strict=True)]) < 0:
            kept = [n for n in kept if n not in some]
            gone.append(heads[some[0]])
    sizes = [whole[n] if gives else least[n] for n, gives in enumerate(words)]
    while left(sizes) > 0 and (low := [n for n in kept if sizes[n] < whole[n]]):
        sizes[max(low, key=lambda n: (len(wrap(heads[n], sizes[n])), -sizes[n]))] += (
            1  # the head over the most lines first
        )
    made = Table(box=None, padding=(0, GAP, 0, 0), header_style="dim")
    for n in kept:
        if words[n]:
            made.add_column(heads[n], overflow="fold")
        else:
            made.add_column(heads[n], justify="right", width=sizes[n])
    for number, row in enumerate(rows):
        made.add_row(*(row[n] for n in kept), style=styles[number] if styles else "")
    return made, gone
