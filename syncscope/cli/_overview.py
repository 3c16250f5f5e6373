"""Many recordings at a glance: a row for each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from syncscope.cli._busy import busy_share
from syncscope.cli._console import console
from syncscope.exporters import _figures as figures
from syncscope.exporters import stem
from syncscope.model.answer import Decision
from syncscope.model.what_if import first_of
from syncscope.model.words import visible

if TYPE_CHECKING:
    from syncscope.model.report import Report

WHOLE = 3  # so many are also shown each by itself; of more there is the table alone
NAME, ROOM = 36, 30  # columns at most for the name; at least for the name and the place, or figures are left out
COLUMNS = ("step", "syncs", "idle", "answer", "saves", "between", "do first")


@dataclass(frozen=True, slots=True)
class AtAGlance:
    """What stands in it, as words; `rank` is None where none is known."""

    path: str
    rank: int | None
    cells: tuple[str, ...]  # of `COLUMNS`
    worst: str  # where it waits most, or why that is not known
    op: str = ""  # in which way it waits there


def row(report: Report, path: str) -> AtAGlance:
    """The row of a report; the path is that of its file."""
    meta = report.trace.meta if report.trace is not None else {}
    refused = report.coverage is not None and bool(report.coverage.refusal)
    busy = None if refused else busy_share(report)
    own = [line for line in report.lines if not line.fallback]
    found = report.answer if report.lines else None
    length = figures.measured_step(report)
    todo, per = first_of(report.what_if), figures.saving_step(report)
    between = "-"
    if found is not None and found.low is not None and found.high is not None:
        between = f"{100 * found.low:.0f} to {100 * found.high:.0f} %".replace("-0 ", "0 ")
    decision = Decision.UNKNOWN if refused else found.decision if found is not None else Decision.LEAVE
    cells = (
        figures.time(length) if length else "-",
        "-" if refused else figures.count(sum(line.count for line in own)),
        figures.percent(None if busy is None else max(0.0, 1 - busy)),
        str(decision),
        figures.percent(found.share if found is not None else None),
        between,
        figures.percent(todo.saving / per) if todo is not None and per and figures.foretold(report, todo) else "-",
    )
    worst = "nowhere"
    if refused and report.coverage is not None:
        worst = report.coverage.refusal
    elif own:
        first = own[0]
        known = first.place.shortly if first.place else first.module
        return AtAGlance(path, meta.get("rank"), cells, known or f"no line ({first.op})", first.op if known else "")
    return AtAGlance(path, meta.get("rank"), cells, worst)


def show(rows: Sequence[AtAGlance], alone: bool) -> None:
    """Print the table; where it stands `alone`, also how one of them, or each, is seen whole."""
    from rich.table import Table

    out = console()
    columns = ("rank", *COLUMNS)
    cells = [("-" if one.rank is None else str(one.rank), *one.cells) for one in rows]
    kept = [name for name in columns if name != "rank" or any(one.rank is not None for one in rows)]
    widths = {name: 2 + max(map(len, column)) for name, *column in zip(columns, columns, *cells, strict=True)}
    for name in ("between", "do first", "idle"):
        if out.width - sum(widths[one] for one in kept) < ROOM:
            kept.remove(name)
    room = max(24, out.width - sum(widths[one] for one in kept)) - 4  # between columns
    most = min(NAME, room * 3 // 5)
    names = [visible(name) for name in _names(rows, most)]
    name_room = min(most, max(len("recording"), *map(len, names)))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("recording", no_wrap=True)
    for name in kept:
        table.add_column(name, justify="left" if name == "answer" else "right", no_wrap=True)
    table.add_column("waits most at", no_wrap=True)
    for name, one, own in zip(told_apart(names, name_room), rows, cells, strict=True):
        shown = [cell for column, cell in zip(columns, own, strict=True) if column in kept]
        table.add_row(name, *shown, _worst(one, room - name_room))
    out.print(table)
    said = (
        "answer, saves: of waits, what a step is shorter if nothing waits; do first: what it is by what the report of one says "
        "to do first; idle: the part of it in which the device has nothing to do"
    )
    out.print(f"\n{said}; -: not known, as its report says", style="dim")
    if alone:
        out.print(f"one of them: syncscope report {visible(rows[0].path)}; each of them: --all", style="dim")


def _names(rows: Sequence[AtAGlance], most: int) -> list[str]:
    """What the recordings are called below the folder that holds all of them: where that is longer than `most`, and one lies
    alone in a folder, by that folder, as its own name mostly is a machine, a process and a time."""
    if any("://" in one.path for one in rows):
        return [stem(one.path) for one in rows]
    folders = [os.path.dirname(os.path.abspath(one.path)) for one in rows]
    above = os.path.commonpath(folders)
    inside = [os.path.relpath(folder, above) for folder in folders]
    whole = [os.path.normpath(os.path.join(at, stem(one.path))) for at, one in zip(inside, rows, strict=True)]
    alone = [at != os.curdir and inside.count(at) == 1 for at in inside]
    return [at if len(name) > most and is_ else name for at, name, is_ in zip(inside, whole, alone, strict=True)]


def told_apart(names: Sequence[str], room: int) -> list[str]:
    """Each name in so many columns, without what most of them share: its begin where that leaves them apart, else its middle or
    its end. What stands in the end is mostly what tells names of paths apart, so that is tried first."""
    ways = [[figures.shortened(name, room) for name in names]]
    if len(set(ways[0])) < len(set(names)):
        same = next((n for n, letters in enumerate(zip(*names, strict=False)) if len(set(letters)) > 1), 0)
        ways += [[_cut(name, head, room) for name in names] for head in range(1, room)]
        ways.append([name if len(name) <= room else f"…{name[same:][: room - 2]}…" for name in names])
    return max(ways, key=lambda shown: len(set(shown)))


def _cut(name: str, head: int, room: int) -> str:
    tail = room - 1 - head
    return name if len(name) <= room else f"{name[:head]}…{name[len(name) - tail :]}"


def _worst(one: AtAGlance, room: int) -> str:
    """Where it waits most, in so many columns; with in which way, where there is room."""
    said = visible(one.worst)
    if one.op:
        place = figures.shortened(said, room)
        return f"{place}  {one.op}" if len(place) + len(one.op) + 2 <= room else place
    return said if len(said) <= room else f"{said[: max(1, room - 1)]}…"
