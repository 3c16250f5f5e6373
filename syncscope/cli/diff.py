"""syncscope diff: what became of a loop between two recordings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from syncscope.cli import _formats, _limits, _outputs
from syncscope.cli._diff_tables import number
from syncscope.cli._traces import max_size, newest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from syncscope.analysis.comparison import Comparison

STYLES = {
    **dict.fromkeys(("gone", "fewer", "faster"), "green"),
    **dict.fromkeys(("new", "more", "slower"), "red"),
    "changed": "yellow",
}
MOST_WORK = 12  # kernels in a table
FORMATS = ("terminal", "json", "html", "markdown", "github")


@click.command(short_help="What became of a loop between two recordings.")
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@max_size
@_formats.options(FORMATS, "Write there: the page of AFTER with both (.html), JSON (.json), or Markdown (.md).")
@_limits.share(
    "--max-slowdown",
    "most_slower",
    when="a step of AFTER is surely longer than one of BEFORE by more than that, in percent: 5%. Exit 2 when it "
    "may be 10 % of a step above that, for steps vary too much to judge, and not every step of AFTER is shorter",
)
@_limits.number("--max-new-syncs", "most_new", when="a step of AFTER has more than N syncs that one of BEFORE has not")
def command(
    before: str,
    after: str,
    most: int,
    format_: str | None,
    output: str | None,
    most_slower: float | None,
    most_new: float | None,
) -> int:
    """What became of a loop between two recordings, line by line, and whether the prediction held.

    \b
    syncscope diff before.pt.trace.json.gz after.pt.trace.json.gz
    syncscope diff before.pt.trace.json.gz after.pt.trace.json.gz -o both.html
    syncscope diff before/runs after/runs                the newest recording of each folder; of two jobs each rank
    syncscope diff main/runs mine/runs --max-slowdown 5% --max-new-syncs 0    a gate for CI: exits 1
    syncscope diff main/runs mine/runs --max-slowdown 5% --format markdown    a comment of the pull request

    The prediction is a replay of BEFORE without the syncs that AFTER no longer makes. A change of anything else between the
    two recordings, as of the batch size or the machine, shows as its error, and beside it in numbers. Steps that may differ by
    chance as much as they do are said to be within noise. Of two jobs a row for each rank is shown, and the median rank and the
    worst in full; --max-slowdown is of the median rank, --max-new-syncs of the one that has most.

    Exit status: 0 all well, 1 a limit is broken, else 2 where a file could not be read, the two not be compared, or a
    limit not be judged.
    """
    from syncscope import kineto
    from syncscope.analysis.compare import compare
    from syncscope.cli import _diff_of_jobs, _gate_of_diff
    from syncscope.cli._console import complain
    from syncscope.cli._diff_words import unlike
    from syncscope.errors import UserError

    format_ = _formats.plain(format_, output, FORMATS)
    if (one := _diff_of_jobs.job_in(before)) is not None and (other := _diff_of_jobs.job_in(after)) is not None:
        _outputs.spare([output], [*one.traces.values(), *other.traces.values()])
        return _diff_of_jobs.diff_jobs(one, other, most, format_, output, most_slower, most_new)
    before, after = newest(before), newest(after)
    _outputs.spare([output], [before, after])
    found = compare(kineto.read(before, most), kineto.read(after, most))
    limits = [] if unlike(found) else list(_gate_of_diff.limits(found, most_slower, most_new))
    if format_ == "html" and output is not None:
        from syncscope.cli._diff_files import keep

        keep(found, before, after, most, output)
    elif format_ == "json":
        from syncscope.cli._diff_files import as_object

        _formats.written(json.dumps(as_object(found), indent=2), output)
    elif format_ == "markdown":
        from syncscope.cli._diff_markdown import markdown

        _formats.written(markdown(found, before, after, limits), output)
    elif format_ == "github":
        from syncscope.cli import _diff_annotations

        _formats.written(_diff_annotations.commands(found, after, limits), output, commands=True)
    else:
        show(found, before, after)
    if why := unlike(found):
        if most_slower is not None or most_new is not None:
            complain(UserError(f"no limit can be judged: {why}"))
        return 2
    return _limits.code(limits)


def show(found: Comparison, before: str, after: str) -> None:
    """Print it for people."""
    from rich.table import Table

    from syncscope.cli import _diff_tables
    from syncscope.cli._console import console
    from syncscope.cli._diff_words import sentence, unlike
    from syncscope.exporters._figures import shortened
    from syncscope.model.words import visible

    out = console()
    names = [shortened(visible(name), max(12, out.width - len("before   "))) for name in (before, after)]
    out.print(f"before  {names[0]}, on {' and '.join(found.devices[0]) or 'an unknown device'}", highlight=False)
    out.print(f"after   {names[1]}, on {' and '.join(found.devices[1]) or 'an unknown device'}\n", highlight=False)
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
    told += ["" if ns is None else number(ns, 1e6) for ns in times]
    table.add_row(word, *words, *told, style=STYLES.get(word, ""))
