"""What would help, as rows for a terminal: the saving, what it lies between, and what to write."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from syncscope.exporters import _figures as figures
from syncscope.model.report import Report

MARGIN = "    "
ROWS = 6

# heading, width
COLUMNS = (("saves", 9), ("between", 15), ("at most", 9), ("of step", 9))


def first(report: Report) -> Text | None:
    """What helps most of what can be done, in a line; None where nothing is known to."""
    one = next((one for one in report.what_if if not one.bought), None)
    step = figures.saving_step(report)
    exchange = report.uses.exchange if report.uses else 0.0
    if report.uses and exchange > (one.saving if one else 0.0):
        apart = f"{figures.percent(exchange / report.uses.step)} of a step is exchange with other ranks, or waiting for them"
        return Text.assemble((apart, "bold"), ": `syncscope ranks` over the traces of all ranks says who comes late")
    if one is None:
        return None
    share = f" ({figures.percent(one.saving / step)})" if step else ""
    return Text.assemble(
        (
            f"if {one.name}, {'a step' if report.steps else 'the recording'} is {figures.time(one.saving)}{share} shorter",
            "bold",
        ),
        f": {one.advice}",
    )


def rows(report: Report, width: int) -> Iterator[Text]:
    """The part of the report; nothing where nothing helps."""
    if not report.what_if:
        return
    step = figures.saving_step(report)
    unit, scale = ("us", 1e3) if step is not None and step < 1e6 else ("ms", 1e6)
    last = COLUMNS[3] if report.steps else ("of it", COLUMNS[3][1])
    columns = (*COLUMNS[:3], last) if width >= 80 else (COLUMNS[0], last)
    room = width - sum(size for _, size in columns)
    heads = "".join(name.rjust(size) for name, size in columns)
    yield Text.assemble(
        (f"What would help, {unit} {figures.per(report)}".ljust(room), "bold"), (heads, "dim"), no_wrap=True
    )
    for number, one in enumerate(report.what_if[:ROWS]):
        cells = {
            "saves": figures.fixed(one.saving / scale),
            "between": f"{figures.fixed(max(0.0, one.low) / scale)}-{figures.fixed(one.high / scale)}",
            "at most": figures.fixed(one.bound / scale),
            columns[-1][0]: figures.percent(one.saving / step if step else None),
        }
        text = Text(f"if {one.name}", "bold" if not number else "", no_wrap=True)
        text.truncate(room - 1, overflow="ellipsis")
        text.pad_right(room - text.cell_len)
        yield text.append("".join(cells[name].rjust(size) for name, size in columns))
        said = Text(one.advice + (f"  ({one.rule})" if one.rule else ""), "dim")
        if one.lines:
            said.append("; ".join(["", ", ".join(place.shortly for place in one.lines[:3])]))
        yield from (Text.assemble(MARGIN, part) for part in said.wrap(Console(), width - len(MARGIN)))
    if (more := len(report.what_if) - ROWS) > 0:
        yield Text(f"{MARGIN}and {more} more: --format json has them all", "dim")
    if loops := max(one.loops for one in report.what_if):
        words = f"between: four in five, if yours is like the {loops} loops, all on one GPU, that were changed for real"
        yield from (Text.assemble(MARGIN, part) for part in Text(words, "dim").wrap(Console(), width - len(MARGIN)))
