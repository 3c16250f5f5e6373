"""Which traces below a folder are the ranks of one job: also where it lies in a subfolder, and was recorded several times."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence

from syncscope.cli._console import echo
from syncscope.cli._traces import ranks
from syncscope.model.words import visible

WHEN = re.compile(r"\.([0-9]{10,20})\.pt\.trace\.json(?:\.gz)?$")
"""When a recording ended, in names that torch.profiler's `tensorboard_trace_handler` gives."""


def newest_of_each(paths: Sequence[str]) -> list[str]:
    """The traces, of those of one rank in a folder the newest alone: a schedule that repeats writes one for each time.

    That is said. Where some ranks have more than others it is not known which are of one time, and all are given.
    """
    of_rank: dict[tuple[str, tuple[int, int]], list[str]] = {}
    for path in paths:
        if (told := _rank(path)) is not None:
            of_rank.setdefault((os.path.dirname(path), told), []).append(path)
    older: set[str] = set()
    for folder in dict.fromkeys(folder for folder, _ in of_rank):
        own = [sorted(files, key=_made) for (where, _), files in of_rank.items() if where == folder]
        times = len(own[0])
        if len(own) > 1 and times > 1 and all(len(files) == times for files in own):
            older.update(path for files in own for path in files[:-1])
            last = visible(os.path.basename(own[0][-1]))
            echo(
                f"of {times} recordings of each rank in {visible(folder or '.')} the newest is used, as {last}",
                err=True,
            )
    return [path for path in paths if path not in older]


def _rank(path: str) -> tuple[int, int] | None:
    """Rank and number of ranks, as far as a file says so; None of one that is no part of a job."""
    from syncscope.kineto import header

    told = None if "://" in path else header.rank(path)
    return told if told is not None and told[1] > 1 else None


def _made(path: str) -> tuple[int, str]:
    """When a trace was made: by its name, else by its file."""
    found = WHEN.search(path)
    return (int(found[1]) if found else os.stat(path).st_mtime_ns), path


def jobs(paths: Sequence[str]) -> dict[str, list[str]]:
    """The folders of these files that hold the ranks of one job and nothing else, each with its traces.

    Ranks with a folder each, as `syncscope run` makes them, are in the folder above, whatever else lies beside.
    """
    found, left = _by(paths, lambda path: os.path.dirname(path) or ".")
    beside = Counter(map(os.path.dirname, left))
    alone = [path for path in left if beside[os.path.dirname(path)] == 1 and _rank(path)]
    above, _ = _by(alone, lambda path: os.path.dirname(os.path.dirname(path)) or ".")
    return found | above


def _by(paths: Sequence[str], folder: Callable[[str], str]) -> tuple[dict[str, list[str]], list[str]]:
    """The jobs by a folder of their files, and the files that are of none."""
    folders: dict[str, list[str]] = {}
    for path in paths:
        folders.setdefault(folder(path), []).append(path)
    found = {where: own for where, own in folders.items() if ranks(own)}
    return found, [path for path in paths if not any(path in own for own in found.values())]
