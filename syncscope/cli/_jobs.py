"""Which traces below a folder are the ranks of one job: also where it lies in a subfolder, and was recorded several times."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

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


def numbers(paths: Sequence[str]) -> dict[str, int]:
    """The rank of each of these files that is one of several of a job, as far as it says so."""
    return {path: told[0] for path in paths if (told := _rank(path)) is not None}


def worlds(paths: Sequence[str]) -> dict[int, dict[str, int]]:
    """By how many ranks their job has: those of these files that are one of several, and which, as far as they say so."""
    found: dict[int, dict[str, int]] = {}
    for path in paths:
        if (told := _rank(path)) is not None:
            found.setdefault(told[1], {})[path] = told[0]
    return found


def _made(path: str) -> tuple[int, str]:
    """When a trace was made: by its name, else by its file."""
    found = WHEN.search(path)
    return (int(found[1]) if found else os.stat(path).st_mtime_ns), path


def jobs(paths: Sequence[str]) -> dict[str, list[str]]:
    """The folders of these files that hold the ranks of one job and nothing else, each with its traces.

    The files of a folder are asked together first, with all that lies below it: the ranks of a node may have a folder of their
    own. Ranks with a folder each, as `syncscope run` makes them, are in the folder above, whatever else lies beside.
    """
    local = [path for path in paths if "://" not in path]
    roots = groupby(sorted(local, key=_root), _root)
    found = {where: own for _, below in roots for where, own in _below(list(below))}
    taken = {path for own in found.values() for path in own}
    left = [path for path in local if path not in taken]
    beside = Counter(map(os.path.dirname, left))
    above: dict[str, list[str]] = {}
    for path in left:
        folder = os.path.dirname(path)
        if beside[folder] == 1 and _rank(path):
            above.setdefault(os.path.dirname(folder) or ".", []).append(path)
    return found | {where: own for where, own in above.items() if ranks(own)}


def _root(path: str) -> tuple[str, bool]:
    """What paths that have a folder in common share: the drive, and whether they begin at its root."""
    return os.path.splitdrive(path)[0], os.path.isabs(path)


def _below(paths: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """The folders that hold one job, from the outermost in."""
    folder = os.path.commonpath([os.path.dirname(path) for path in paths])
    if ranks(paths):
        yield folder or ".", list(paths)
        return
    parts: dict[str, list[str]] = {}
    for path in paths:
        inside = os.path.relpath(os.path.dirname(path) or ".", folder or ".")
        parts.setdefault(inside.split(os.sep)[0], []).append(path)
    if len(parts) > 1:
        for own in parts.values():
            yield from _below(own)


def are_several(found: Mapping[str, Sequence[str]]) -> bool:
    """Whether these cannot be the nodes of one job, each with its ranks in a folder: a rank is there twice, or they say of how
    many each is, and do not agree."""
    told = [one for own in found.values() for one in map(_rank, own) if one is not None]
    return len(found) > 1 and (len({number for number, _ in told}) < len(told) or len({world for _, world in told}) > 1)
