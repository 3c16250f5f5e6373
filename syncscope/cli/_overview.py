"""Many recordings at a glance: a row for each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING

from syncscope.cli._busy import busy_share
from syncscope.cli._console import console
from syncscope.exporters import _figures as figures
from syncscope.exporters import stem
from syncscope.exporters._called import told_apart
from syncscope.model.answer import Decision
from syncscope.model.words import visible

if TYPE_CHECKING:
    from syncscope.model.report import Report

WHOLE = 3  # so many are also shown each by itself; of more there is the table alone
# columns for the name and the place, where these are as long; figures that leave less are left out
NAME, PLACE = 26, 18
COLUMNS = ("step ms", "syncs", "idle", "answer", "saves", "between", "do first")
WORDS = COLUMNS[3], COLUMNS[6]  # columns that hold words, too
SPARE = ("between", "idle", "rank", "do first")  # what is left out, the first first
UNMARKED, MOST_AT = "*", "waits most at"
OF_ALL = "no step is marked in it, so it is the whole recording"
LEGEND = {
    "answer, saves": "of waits, what a step is shorter if nothing waits",
    "do first": "what the report of one says to do first, and what of a step that saves",
    "idle": "the part of a step in which the device has nothing to do",
}


@dataclass(frozen=True, slots=True)
class AtAGlance:
    """What stands in it, as words; `rank` is None where none is known."""

    path: str
    rank: int | None
    cells: tuple[str, ...]  # of `COLUMNS`
    worst: str  # where it waits most, or why that is not known
    op: str = ""  # in which way it waits there
    whole: bool = False  # no step is marked in it: its length is that of all of it


def row(report: Report, path: str) -> AtAGlance:
    """The row of a report; the path is that of its file."""
    meta = report.trace.meta if report.trace is not None else {}
    refused = report.coverage is not None and bool(report.coverage.refusal)
    busy = None if refused else busy_share(report)
    own = [line for line in report.lines if not line.fallback]
    found = report.answer if report.lines else None
    length = figures.measured_step(report) if report.steps else figures.saving_step(report)  # as its report says
    decision = Decision.UNKNOWN if refused else found.decision if found is not None else Decision.LEAVE
    cells = (
        figures.fixed(length / 1e6) if length else "-",
        "-" if refused else figures.count(report.syncs),
        figures.percent(None if busy is None else max(0.0, 1 - busy)),
        str(decision),
        figures.percent(found.share if found is not None else None),
        figures.interval(found),
        _first(report),
    )
    whole = bool(length) and not report.steps
    worst = "nowhere"
    if refused and report.coverage is not None:
        worst = report.coverage.refusal
    elif own:
        first = own[0]
        known = first.place.shortly if first.place else first.module
        return AtAGlance(path, meta.get("rank"), cells, known or "no line", first.op, whole)
    return AtAGlance(path, meta.get("rank"), cells, worst, whole=whole)


def _first(report: Report) -> str:
    """What to do first, in a word, and what that saves: `launches 62 %`; `nothing` where nothing is known to help."""
    todo, per = figures.todo(report), figures.saving_step(report)
    if todo is None or not per:
        unknown = report.answer is None or report.answer.decision is Decision.UNKNOWN
        return "-" if unknown or report.fidelity is None else "nothing"
    if not figures.foretold(report, todo):
        return f"{todo.word} ?"
    return f"{todo.word} {round(100 * todo.saving / per)} %"


def show(rows: Sequence[AtAGlance], alone: bool) -> None:
    """Print the table; where it stands `alone`, also how one of them, or each, is seen whole. A name that is longer than its
    column stands whole above the figures."""
    from rich.text import Text

    out = console()
    columns = ("rank", *COLUMNS)
    unmarked = any(one.whole for one in rows)
    steps = [one.cells[0] + (UNMARKED if one.whole else " " * unmarked) for one in rows]
    ranks = ["-" if one.rank is None else str(one.rank) for one in rows]
    cells = [(rank, step, *one.cells[1:]) for rank, step, one in zip(ranks, steps, rows, strict=True)]
    kept = [name for name in columns if name != "rank" or any(one.rank is not None for one in rows)]
    widths = {name: 2 + max(map(len, column)) for name, *column in zip(columns, columns, *cells, strict=True)}
    names = titles(rows)
    worst = min(PLACE, max(len(MOST_AT), *(len(one.worst) + 2 + len(one.op) if one.op else 0 for one in rows)))
    longest = max(len("recording"), *map(len, names))
    wanted = min(NAME, longest) + 2 + worst
    for name in SPARE:
        if name in kept and out.width - sum(widths[one] for one in kept) < wanted:
            kept.remove(name)
    room = max(24, out.width - sum(widths[one] for one in kept)) - 2  # between columns
    name_room = max(len("recording"), min(longest, room - worst, room * 3 // 5))
    sized = {name: widths[name] - 2 for name in kept}
    heads = [_cell(name, name, sized[name]) for name in kept]
    out.print(Text("  ".join(("recording".ljust(name_room), *heads, MOST_AT)), "dim", no_wrap=True))
    for name, one, own in zip(names, rows, cells, strict=True):
        shown = [_cell(head, cell, sized[head]) for head, cell in zip(columns, own, strict=True) if head in kept]
        if above := len(name) > name_room:
            out.print(Text(name, no_wrap=True, overflow="ellipsis"))
        figured = ("" if above else name).ljust(name_room), *shown, _worst(one, room - name_room)
        out.print(Text("  ".join(figured).rstrip(), no_wrap=True, overflow="ellipsis"))
    legend = {name: said for name, said in LEGEND.items() if name in kept or name == "answer, saves"}
    marked = {UNMARKED: OF_ALL} if unmarked else {}
    said = "; ".join(
        f"{name}: {words}" for name, words in (legend | marked | {"-": "not known, as its report says"}).items()
    )
    out.print(f"\n{said}", style="dim")
    if alone:
        out.print(f"one of them: syncscope report {visible(rows[0].path)}; each of them: --all", style="dim")


def titles(rows: Sequence[AtAGlance]) -> list[str]:
    """What the recordings are called in a table, in visible characters."""
    return [visible(name) for name in _names(rows, NAME)]


def legend(unmarked: bool) -> list[str]:
    """What the columns of all figures say, and the mark of what is `unmarked`."""
    told = LEGEND | ({UNMARKED: OF_ALL} if unmarked else {})
    return [f"{name}: {said}" for name, said in told.items()] + ["-: not known, as its page says"]


def _names(rows: Sequence[AtAGlance], most: int) -> list[str]:
    """What the recordings are called below the folder that holds all of them: where that is longer than `most`, and one lies
    alone in a folder, by that folder. What a profiler has named is called by its folder, and by its rank or time if others lie
    there."""
    if any("://" in one.path for one in rows):
        return [stem(one.path) for one in rows]
    folders = [os.path.dirname(os.path.abspath(one.path)) for one in rows]
    above = os.path.commonpath(folders)
    inside = [os.path.relpath(folder, above) for folder in folders]
    given = told_apart([one.path for one in rows], {one.path: one.rank for one in rows if one.rank is not None})
    own = [given.get(one.path, stem(one.path)) for one in rows]
    whole = [
        stem(one.path) if not name and at == os.curdir else os.path.normpath(os.path.join(at, name))
        for at, name, one in zip(inside, own, rows, strict=True)
    ]
    alone = [at != os.curdir and inside.count(at) == 1 for at in inside]
    return [at if len(name) > most and is_ else name for at, name, is_ in zip(inside, whole, alone, strict=True)]


def _cell(head: str, text: str, size: int) -> str:
    return text.ljust(size) if head in WORDS else text.rjust(size)


def _worst(one: AtAGlance, room: int) -> str:
    """Where it waits most, in so many columns; with in which way, where there is room."""
    said = visible(one.worst)
    if one.op:
        place = figures.shortened(said, room)
        return f"{place}  {one.op}" if len(place) + len(one.op) + 2 <= room else place
    return shorten(said, room, placeholder=" …")
