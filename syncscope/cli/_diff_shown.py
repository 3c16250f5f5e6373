"""Two recordings side by side, as the terminal shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from syncscope.cli import _diff_tables

if TYPE_CHECKING:
    from rich.table import Table

    from syncscope.analysis.comparison import Comparison

STYLES = {
    **dict.fromkeys(("gone", "fewer", "faster"), "green"),
    **dict.fromkeys(("new", "more", "slower"), "red"),
    "changed": "yellow",
}
MOST_WORK = 12  # kernels in a table


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
    lines = _table(("line", "op"), ("syncs", "blocked"))
    for row in rows:
        _add(lines, row.word, (shortened(row.place, max(12, out.width - 60)), row.op), row.counts, row.blocked)
    out.print(lines if rows else "neither waits for the device")
    out.print()
    if work := _diff_tables.kernels(found):
        wide, known = max(12, (out.width - 50) // 2), any(row.place for row in work)
        kernels = _table(("kernel or copy", "of line")[: 1 + known], ("number", "takes"))
        for one in work[:MOST_WORK]:
            cells = (shortened(one.name, wide), shortened(one.place, wide))[: 1 + known]
            _add(kernels, one.word, cells, one.counts, one.times)
        out.print(kernels)
        out.print(f"and {len(work) - MOST_WORK} more\n" if len(work) > MOST_WORK else "", style="dim")
    if not first:
        out.print(sentence(found))


def _table(words: Sequence[str], figures: tuple[str, str]) -> Table:
    """An empty table of what changed: what became of it, these words of it, how often it is, and how long in ms."""
    from rich.table import Table

    made = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("", *words):
        made.add_column(name, no_wrap=True)
    for name in (f"{figures[0]} before", "after", f"{figures[1]} ms before", "after"):
        made.add_column(name, justify="right", min_width=7)
    return made


def _add(
    table: Table,
    word: str,
    words: Sequence[str],
    counts: tuple[float | None, float | None],
    times: tuple[float | None, float | None],
) -> None:
    """A row of such a table."""
    told = ["" if count is None else f"{count:.3g}" for count in counts]
    told += ["" if ns is None else _diff_tables.number(ns, 1e6) for ns in times]
    table.add_row(word, *words, *told, style=STYLES.get(word, ""))
