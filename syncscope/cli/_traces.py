"""Which recordings a command line means, how much of each is read, and whether they are one job."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

GIB = 1 << 30
max_size = click.option(
    "--max-size",
    "most",
    type=click.FloatRange(min=0),
    default=4,  # as `kineto.scan.MOST`, which --help need not import
    show_default=True,
    metavar="GIB",
    callback=lambda _context, _option, gib: int(gib * GIB),
    help="Read at most so much of a recording, unpacked.",
)
ENDINGS = (".json", ".json.gz")


def traces(files: Iterable[str]) -> list[str]:
    """The files, and in place of a folder the traces in it: those named as such, else whatever is JSON. URLs as they are."""
    found: list[str] = []
    for name in files:
        inside = (
            sorted(str(p) for p in Path(name).rglob("[!.]*.json*") if p.name.endswith(ENDINGS) and p.is_file())
            if os.path.isdir(name)
            else []
        )
        found += [path for path in inside if ".pt.trace." in path] or inside or [name]
    return found


def ranks(paths: Sequence[str]) -> int:
    """How many ranks of one job these files are; 0 where they are not clearly that: each another rank of as many."""
    from syncscope.kineto import header

    if len(paths) < 2 or any("://" in path for path in paths):
        return 0
    told = [header.rank(path) for path in paths]
    known = {one for one in told if one is not None}
    one_job = len(known) == len(told) and len({number for number, _ in known}) == len(known)
    return len(known) if one_job and len({world for _, world in known}) == 1 else 0
