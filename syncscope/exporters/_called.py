"""What a recording is called: a profiler names its files after host, process and time, and nobody knows them by that."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence

from syncscope.exporters import stem
from syncscope.model.trace import Trace

GIVEN = re.compile(r"(?P<host>.+)_(?P<process>\d+)\.(?P<when>\d+)\.pt\.trace\.json(\.gz)?")
"""What torch.profiler and `syncscope run` call a file: of the one `when` is in ns, of the other in ms."""
DIGITS = 10  # of a time in s, until the year 2286


def is_given(path: str) -> bool:
    """Whether a program, and no person, has named the file."""
    return _given(path) is not None


def run_of(path: str) -> str:
    """The run that a file belongs to: the folder of one that a program has named, else its own name."""
    folder = _parts(path)[-2:-1]
    return (folder[0] if folder and is_given(path) else "") or stem(path) or "syncscope"


def title(path: str, rank: int | None = None) -> str:
    """What was recorded, as a person would call it, with the rank where it is one of several."""
    folders = _parts(path)[:-1]
    known = "/".join(folders[-2:]) if is_given(path) and folders[-1:] == ["syncscope"] else run_of(path)
    return known if rank is None or known.endswith(f"rank{rank}") else f"{known}, rank {rank}"


def rank_of(trace: Trace) -> int | None:
    """The rank, where the recording is one of several of a job."""
    many = isinstance(size := trace.meta.get("world_size"), int) and size > 1
    return trace.meta.get("rank") if many else None


def told_apart(paths: Sequence[str], ranks: Mapping[str, int]) -> dict[str, str]:
    """Of each that a program has named, what it is called inside of its folder: "" where it is alone there, else its rank, the
    time or the process, by the first of these that no other there shares."""
    inside: dict[str, list[str]] = {}
    for path in dict.fromkeys(paths):
        inside.setdefault(os.path.dirname(path), []).append(path)
    found: dict[str, str] = {}
    for files in inside.values():
        given = [path for path in files if is_given(path)]
        found |= dict.fromkeys(given, "") if len(files) == 1 else _apart(given, ranks)
    return found


def _apart(given: Sequence[str], ranks: Mapping[str, int]) -> dict[str, str]:
    rank = {path: f"rank{ranks[path]}" for path in given if path in ranks}
    when = {path: text for path in given if (text := _when(path))}
    process = {path: f"process{match['process']}" for path in given if (match := _given(path))}
    for ways in ((rank,), (when,), (process,), (rank, when), (when, process)):
        names = ["-".join(way[path] for way in ways) for path in given if all(path in way for way in ways)]
        if len(set(names)) == len(given):
            return dict(zip(given, names, strict=True))
    return {path: stem(path) for path in given}


def _when(path: str) -> str:
    """The second at which it was recorded, in Universal Time; "" where its name does not say."""
    match = _given(path)
    if match is None or len(match["when"]) < DIGITS:
        return ""
    return time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime(int(match["when"][:DIGITS])))


def _given(path: str) -> re.Match[str] | None:
    return GIVEN.fullmatch((_parts(path) or [""])[-1])


def _parts(path: str) -> list[str]:
    return [part for part in path.replace("\\", "/").split("/") if part]
