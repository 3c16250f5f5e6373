"""Two recordings side by side, as the terminal shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from syncscope.cli import _diff_tables
from syncscope.cli._fitting import fitted

if TYPE_CHECKING:
    from rich.table import Table

    from syncscope.analysis.comparison import Comparison

STYLES = {
    **dict.fromkeys(("gone", "fewer", "faster"), "green"),
    **dict.fromkeys(("new", "more", "slower"), "red"),
    "changed": "yellow",
}
MOST_WORK = 12  # kernels in a table
_Pair = tuple[float | None, float | None]
_Row = tuple[str, tuple[str, ...], _Pair, _Pair]  # a word, what it is of, how often, how long


def show(found: Comparison, before: str, after: str) -> None:
    """Print it for people."""
    from rich.table import Table

    from syncscope.cli._console import console
    from syncscope.cli._diff_words import sentence, unlike
    from syncscope.exporters._figures import shortened
    from syncscope.model.words import visible

    out = console()
    names = [shortened(visible(name), max(12, out.width - len("before   "))) for name in (before, after)]
    out.print(f"before  {names[0]}, on {' and '.join(found.devices[0]) or 'an unknown device'}", highlight=False)
    out.print(f"after   {names[1]}, on {' and '.join(found.devices[1]) or 'an unknown device'}\n", highlight=False)
    first = not unlike(found) and bool(found.of_others or found.perhaps_others)
    if first:  # else a reader takes the figures for what became of one program
        out.print(f"{sentence(found)}\n", style="yellow")
    totals = Table(box=None, padding=(0, 2, 0, 0))
    for name, justify in (("", "left"), ("before", "right"), ("after", "right"), ("", "left")):
        totals.add_column(name, justify=justify)  # type: ignore[arg-type]  # rich's own literal
    for told in _diff_tables.totals(found):
        totals.add_row(*told)
    out.print(totals)
    for remark in _diff_tables.remarks(found):
        out.print(remark, style="dim")
    out.print()
    if unlike(found):
        out.print(sentence(found), style="yellow")
        return
    rows = _diff_tables.lines(found)
    lines = [(row.word, (row.place, row.op), row.counts, row.blocked) for row in rows]
    out.print(
        _table(("line", "op"), ("syncs", "blocked"), lines, out.width) if rows else "neither waits for the device"
    )
    out.print()
    if work := _diff_tables.kernels(found):
        wide, known = max(12, (out.width - 50) // 2), any(row.place for row in work)
        kernels = [
            (one.word, (shortened(one.name, wide), one.place)[: 1 + known], one.counts, one.times)
            for one in work[:MOST_WORK]
        ]
        out.print(_table(("kernel or copy", "of line")[: 1 + known], ("number", "takes"), kernels, out.width))
        out.print(f"and {len(work) - MOST_WORK} more\n" if len(work) > MOST_WORK else "", style="dim")
    if not first:
        out.print(sentence(found))


def _table(words: Sequence[str], figures: tuple[str, str], rows: Sequence[_Row], width: int) -> Table:
    """What changed: what became of it, these words of it, how often it is, and how long in ms."""
    heads = ("", *words, f"{figures[0]} before", "after", f"{figures[1]} ms before", "after")
    cells = [
        (
            word,
            *said,
            *("" if count is None else f"{count:.3g}" for count in counts),
            *("" if ns is None else _diff_tables.number(ns, 1e6) for ns in times),
        )
        for word, said, counts, times in rows
    ]
    are_words = [n <= len(words) for n in range(len(heads))]
    return fitted(heads, cells, are_words, width, styles=[STYLES.get(word, "") for word, *_ in rows])[0]
