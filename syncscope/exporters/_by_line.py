"""Where a step goes, by line, as rows for a terminal: some lines, the rest as one, and what has no line."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from rich.text import Text

from syncscope.exporters import _figures as figures
from syncscope.exporters._rows import fitting, note
from syncscope.exporters._source_frame import line_of
from syncscope.model.line_use import LineUse, LineUses
from syncscope.model.report import Report

ROWS, ROWS_IN_SHORT = 10, 5
ROOM = 34  # columns for the place and its code; figures that leave less are not shown
MUCH, NOTHING = 0.05, 0.005  # shares of a step

# heading, width, and how soon it is left out where there is little room
COLUMNS = (
    ("host", 8, 2),
    ("launches", 9, 3),
    ("device", 8, 0),
    ("backward", 9, 4),
    ("idle", 8, 0),
    ("of step", 9, 0),
)


def rows(report: Report, width: int, whole: bool) -> Iterator[Text]:
    """The part of the report, in short or whole; nothing where no line of a launch is known."""
    most = ROWS if whole else ROWS_IN_SHORT
    found = report.by_line
    if found is None or not any(one.place and one.launches for one in found.lines):
        return
    columns = fitting(COLUMNS, width - ROOM)
    room = width - sum(size for _, size, _ in columns)
    unit, scale = ("us", 1e3) if found.step < 1e6 else ("ms", 1e6)
    title = f"Where {'a step' if report.steps else 'the recording'} goes, by line, {unit}"
    heads = "".join(
        (name if report.steps else name.replace("of step", "of it")).rjust(size) for name, size, _ in columns
    )
    yield Text.assemble((title.ljust(room), "bold"), (heads, "dim"), no_wrap=True)
    known = [one for one in found.lines if one.place]
    shown, rest = known[:most], known[most:]
    for one in shown:
        share = one.of_step / found.step if found.step else 0.0
        weight = "dim" if share < NOTHING else "bold red" if share >= MUCH else "bold"
        text = Text.assemble((_place(one, room - 2), weight), no_wrap=True)
        code = _code(one, report)
        if code and (left := room - text.cell_len - 3) > 8:
            text.append("  ").append(Text(code[: left - 1] + "…" if len(code) > left else code))
        yield _padded(text, room, [one], found, columns, scale)
        if one.since and one.between >= MUCH * found.step:
            runs = f": {one.runs}" if one.runs else ""
            said = f"{figures.time(one.between)} of the host's before it, most since {one.since.shortly}{runs}"
            yield from note(said, width)
    if rest:
        yield _padded(Text(f"{len(rest)} more line{'s' * (len(rest) > 1)}", "dim"), room, rest, found, columns, scale)
    if bare := [one for one in found.lines if not one.place and (one.host or one.of_step)]:
        worked = any(one.host or one.device or one.backward for one in bare)
        name = "no line known" if worked else "idle, unexplained"
        yield _padded(Text(name, "dim"), room, bare, found, columns, scale)
    apart = {name for name, _, _ in COLUMNS} - {name for name, _, _ in columns}
    if whole or ("backward" in apart and any(one.backward for one in found.lines)):
        yield from note(legend(apart, report), width)


def legend(apart: Container[str], report: Report) -> str:
    """What the last column is a part of, and which times it has that no column shows."""
    back = "what backward() launches for it" + ", which is not shown" * ("backward" in apart)
    of = "of step" if report.steps else "of it"
    return f"{of}: the device's time in what the line launches, in {back}, and idle for it. The host's runs beside it"


def _padded(
    text: Text,
    room: int,
    lines: Sequence[LineUse],
    found: LineUses,
    columns: Sequence[tuple[str, int, int]],
    scale: float,
) -> Text:
    cells = {
        "host": figures.fixed(sum(one.host for one in lines) / scale),
        "launches": figures.count(sum(one.launches for one in lines), 4),
        "device": figures.fixed(sum(one.device for one in lines) / scale),
        "backward": figures.fixed(sum(one.backward for one in lines) / scale),
        "idle": figures.fixed(sum(one.idle for one in lines) / scale),
        "of step": figures.percent(sum(one.of_step for one in lines) / found.step if found.step else None),
    }
    row = text.copy()
    row.no_wrap = True
    row.pad_right(room - row.cell_len)
    return row.append("".join(cells[name].rjust(size) for name, size, _ in columns))


def _place(one: LineUse, width: int) -> str:
    """The line, and of a library's the user's that led there, as far as there is room."""
    assert one.place is not None
    place = one.place.shortly
    caller = f" < {one.caller.shortly}" if one.caller else ""
    return figures.shortened(place, max(20, width - len(caller))) + caller


def _code(one: LineUse, report: Report) -> str:
    return line_of(report.sources.get(one.place.path), one.place.line) if one.place and not one.caller else ""
