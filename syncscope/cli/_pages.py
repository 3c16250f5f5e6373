"""A folder of pages: of each recording one, of each job among them one, and the table of all, with links."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from syncscope import files
from syncscope.cli import _overview
from syncscope.cli._console import echo
from syncscope.errors import UserError
from syncscope.exporters import html
from syncscope.model.words import visible

INDEX = "index.html"
LEAD = "A row for each page of this folder."


def of_jobs(
    jobs: Mapping[str, list[str]], most: int, folder: str, taken: Collection[str]
) -> tuple[list[int], dict[str, Path]]:
    """Write a page for each of these jobs, beside those of its ranks, whose names are `taken`: exit codes, and the pages by
    what they are of.

    Ranks that cannot be one job have none, which is said.
    """
    from syncscope.cli._job import JobView
    from syncscope.cli._many_jobs import show_jobs

    codes: list[int] = []
    pages: dict[str, Path] = {}
    for where, own in jobs.items():
        name = f"job-{os.path.basename(os.path.abspath(where))}"
        while f"{name}.html" in {*taken, *(page.name for page in pages.values())}:
            name += "-of-all"
        page = Path(folder, f"{name}.html")
        _make(page.parent)
        code, none = show_jobs({where: own}, most, JobView("html", str(page)))
        for error in none.values():
            echo(f"no page of {visible(where)} as a job, for {error.message}", err=True)
        codes += code
        if not none and page.exists():
            pages[f"{visible(where)}: {len(own)} ranks of one job"] = page
    return codes, pages


def index(
    rows: Sequence[_overview.AtAGlance], pages: Sequence[Path | None], jobs: Mapping[str, Path], folder: Path
) -> None:
    """Write the table of the recordings, each with a link to its page, if it has one, and above them the jobs that they are
    of."""
    ranked, unmarked = any(one.rank is not None for one in rows), any(one.whole for one in rows)
    heads = [*(["rank"] * ranked), *_overview.COLUMNS]
    table = [[name, *[""] * len(heads), ""] for name in jobs]
    for name, one in zip(_overview.titles(rows), rows, strict=True):
        rank = ["-" if one.rank is None else str(one.rank)] * ranked
        length = one.cells[0] + _overview.UNMARKED * one.whole
        table.append([name, *rank, length, *one.cells[1:], f"{one.worst}  {one.op}".strip()])
    columns = [("recording", True), *((name, name in _overview.WORDS) for name in heads), (_overview.MOST_AT, True)]
    links = [page.name if page is not None else "" for page in (*jobs.values(), *pages)]
    shown = html.index_page(f"{len(rows)} recordings", LEAD, columns, table, links, notes=_overview.legend(unmarked))
    files.write(folder / INDEX, html.page(shown, "").encode())
    echo(f"wrote {folder / INDEX}", err=True)


def beside_index(name: str) -> str:
    """What the page of a recording is called, beside the table of all."""
    return f"{name}-1" if f"{name}.html" == INDEX else name


def _make(folder: Path) -> None:
    """The folder, where the one above it is there, for else its name may be misspelt."""
    if not folder.exists():
        if not folder.parent.is_dir():
            raise UserError(
                f"there is no folder {os.fspath(folder.parent)}", "make it, or choose another place with -o"
            )
        folder.mkdir()
