"""Which recordings a command line means, how much of each is read, and whether they are one job."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from syncscope.cli._console import echo
from syncscope.cli._number import FiniteNumber
from syncscope.errors import UserError
from syncscope.model.words import visible

GIB = 1 << 30
max_size = click.option(
    "--max-size",
    "most",
    type=FiniteNumber(min=0),
    default=4,  # as `kineto.scan.MOST`, which --help need not import
    show_default=True,
    metavar="GIB",
    callback=lambda _context, _option, gib: int(gib * GIB),
    help="Read at most so much of a recording, unpacked.",
)
ENDINGS = (".json", ".json.gz")
PACKED = (".json.zst", ".json.zip", ".json.xz", ".json.bz2")  # cannot be read, which is said where it is tried
NAMED = 3  # files that are no traces


def traces(files: Iterable[str]) -> list[str]:
    """The files, and in place of a folder the traces in it; of other JSON there a line is said. URLs as they are."""
    found: list[str] = []
    for name in files:
        inside, others = below(name) if os.path.isdir(name) else ([], [])
        if others:
            shown = ", ".join(visible(os.path.relpath(path, name)) for path in others[:NAMED])
            more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
            echo(f"not read in {visible(name)}, for no list of events is in it: {shown}{more}", err=True)
        found += inside or [name]
    return found


def no_trace(folder: str, hint: str = "traces end in .json or .json.gz") -> UserError:
    """What is said of a folder that holds no trace: it may be closed, or hold what a killed program left."""
    from syncscope.cli._left_behind import SUFFIX

    if not os.access(folder, os.R_OK | os.X_OK):
        return UserError(f"{visible(folder)}: permission denied", "check the permissions")
    left = sorted(name for name in os.listdir(folder) if name.endswith(SUFFIX))
    if left:
        hint = f"what a killed program left is read by name: `syncscope report {os.path.join(folder, left[0])}`"
    return UserError(f"{visible(folder)} holds no trace", hint)


def refuse_program(path: str) -> None:
    """That a recording is wanted, where a program is named.

    Raises:
        UserError: it is one.
    """
    if path.endswith(".py") and os.path.isfile(path):
        raise UserError(f"{path} is a program, and no recording of one", f"`syncscope run {path}` makes one")


def refuse_unreadable_rank(name: str, most: int) -> None:
    """Which file of a folder of ranks cannot be read, so that the folder is not seen to be a job; nothing of other folders.

    Raises:
        UserError: there is such a file; it names it.
    """
    from syncscope import kineto
    from syncscope.kineto import header

    found = below(name)[0] if os.path.isdir(name) else []
    if len(_told(found)) < 2:
        return
    for path in found:
        if header.rank(path) is None and not header.holds_events(path):
            kineto.read(path, most)


def newest(name: str) -> str:
    """The file, and in place of a folder the newest of the traces in it, which is said where there are several.

    Raises:
        UserError: there is none in it, or they are of several ranks, once or more often: the newest is any of these.
    """
    if not os.path.isdir(name):
        refuse_program(name)
        return name
    found, _ = below(name)
    if not found:
        raise no_trace(name)
    if len(several := _told(found)) > 1:
        raise UserError(
            f"{visible(name)} holds {len(several)} ranks of one job"
            if ranks(found)
            else f"{visible(name)} holds {len(found)} traces, of {len(several)} ranks",
            f"name one of them, as {visible(found[0])}",
        )
    last = max(found, key=lambda path: (os.path.getmtime(path), path))
    if len(found) > 1:
        echo(f"the newest of {len(found)} traces in {visible(name)}: {visible(os.path.relpath(last, name))}", err=True)
    return last


def below(folder: str) -> tuple[list[str], list[str]]:
    """The traces below a folder, and the files that are other JSON.

    What cannot be read counts as a trace, whatever of it is damaged, and a folder, too: it is said when its turn comes, and
    no gate passes it by.
    """
    from syncscope.kineto import header

    named, closed = [], list[str]()
    for above, folders, names in os.walk(folder, onerror=lambda error: closed.append(str(error.filename))):
        folders[:] = [each for each in folders if not each.startswith(".")]
        paths = (str(Path(above, name)) for name in names if name[0] != "." and name.endswith(ENDINGS + PACKED))
        named += [path for path in paths if os.path.isfile(path)]
    sure = (*PACKED, ".pt.trace.json", ".pt.trace.json.gz")
    taken = {
        path
        for path in named
        if path.endswith(sure)
        or not os.access(path, os.R_OK)
        or header.is_trace(path)
        or not header.is_other_json(path)
    }
    return sorted([*taken, *closed]), sorted(set(named) - taken)


def _told(paths: Sequence[str]) -> set[tuple[int, int]]:
    """Which ranks these files are of, and of how many; nothing of those that do not say so."""
    from syncscope.kineto import header

    return {one for one in map(header.rank, paths) if one is not None}


def ranks(paths: Sequence[str]) -> int:
    """How many ranks of one job these files are; 0 where they are not clearly that: each another rank of as many."""
    from syncscope.kineto import header

    if len(paths) < 2 or any("://" in path for path in paths):
        return 0
    told = [header.rank(path) for path in paths]
    known = {one for one in told if one is not None}
    one_job = len(known) == len(told) and len({number for number, _ in known}) == len(known)
    return len(known) if one_job and len({world for _, world in known}) == 1 else 0
