"""syncscope ranks: the traces of all ranks as one job."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from syncscope.errors import UserError

if TYPE_CHECKING:
    from syncscope.analysis.job import Job

ENDINGS = (".json", ".json.gz")
SHOWN = 12  # ranks and collectives in a table


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--tables", type=click.Path(path_type=Path), metavar="DIR", help="Keep Parquet tables of every rank there."
)
@click.option("--format", "format_", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True)
def command(folder: Path, tables: Path | None, format_: str) -> int:
    """Who waits for whom in a job, and what a line costs all of it.

    FOLDER holds one trace for each rank, or the tables that --tables made. A rank that waits for another one in a collective
    gains nothing by making no read: the price of a line here is what the job gains.

    \b
    syncscope ranks traces/                       a table for people
    syncscope ranks traces/ --tables tables/      and keep the tables: SQL by DuckDB, or again by `syncscope ranks tables/`
    """
    from syncscope.analysis.job import job

    ranks, problems = loaded(folder, tables)
    found = job(ranks)
    if format_ == "json":
        click.echo(json.dumps(asdict(found) | {"problems": problems}, indent=2))
    else:
        show(found, problems)
    return 2 if problems else 0


def loaded(folder: Path, tables: Path | None) -> tuple[list[Any], list[str]]:
    """The ranks in a folder, and what could not be read."""
    from syncscope import kineto
    from syncscope.analysis import fleet
    from syncscope.analysis.rank import Rank

    if (folder / "graph").is_dir():
        return fleet.load(folder), []
    paths = sorted(str(p) for p in folder.rglob("*") if p.name.endswith(ENDINGS) and not p.name.startswith("."))
    if not paths:
        raise UserError(f"{folder} holds no trace", "traces end in .json or .json.gz, one for each rank")
    parts = list(fleet.mapped(kineto.read, paths, folder=None if tables is None else str(tables)))
    problems = [str(part) for part in parts if isinstance(part, UserError)]
    ranks = [part for part in parts if isinstance(part, Rank)]
    return (fleet.load(tables) if tables is not None else ranks), problems


def show(found: Job, problems: list[str]) -> None:
    """Print it for people."""
    from rich.console import Console

    console = Console(highlight=False)
    console.print(f"{len(found.ranks)} ranks, {len(found.meets)} collectives, a step of {found.step / 1e6:.2f} ms")
    console.print(f"the joint replay ends within {max(found.fidelity, 1e-4):.2%} of what was measured\n")
    slow = sorted(found.ranks, key=lambda rank: -rank.imposed)[:SHOWN]
    columns = (
        "rank",
        "blocked",
        "of it for others",
        "comes last",
        "others wait",
        "mostly by",
        "saved if only it reads not",
    )
    rows = [
        (
            str(r.number),
            _ms(r.blocked),
            _ms(r.symptom),
            f"{r.late} times" if r.late else "",
            _ms(r.imposed) if r.late else "",
            r.cause,
            "" if r.saved_alone is None else _ms(r.saved_alone),
        )
        for r in slow
    ]
    console.print(_table(columns, rows))
    _rest(console, len(found.ranks), "ranks")
    worst = sorted(found.meets, key=lambda meet: -meet.skew)[:SHOWN]
    meets = [(m.key, _ms(m.skew), str(m.late), m.cause, _ms(m.transfer)) for m in worst]
    console.print(_table(("collective", "last after first", "last is", "by", "transfer"), meets))
    _rest(console, len(found.meets), "collectives")
    lines = []
    for line in found.lines:
        place = str(line.place) if line.place else line.module or "no line known"
        prices = [_ms(p) for p in (line.price.alone, line.price.last, line.price.share)] if line.price else [""] * 3
        lines.append((place, line.op, f"{line.count:.3g}", _ms(line.blocked), *prices))
    names = ("line", "op", "reads", "blocked", "alone", "last", "share")
    console.print(_table(names, lines))
    console.print(f"\n{found.verdict}", soft_wrap=True)
    for note in (*found.notes, *problems):
        console.print(f"note  {note}", style="dim")
    console.print("\nms per step; lines: on the mean rank, and what the whole job gains", style="dim")


def _table(columns: tuple[str, ...], rows: list[Any]) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in columns:
        table.add_column(name, justify="left" if name in ("collective", "line", "op", "by", "mostly by") else "right")
    for row in rows:
        table.add_row(*row)
    return table


def _rest(console: Any, count: int, what: str) -> None:
    console.print(f"and {count - SHOWN:,} more {what}\n" if count > SHOWN else "", style="dim")


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.2f}"
