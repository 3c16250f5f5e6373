"""What the reports of several recordings are called, each in a file of its own."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence

from syncscope.exporters import stem
from syncscope.exporters._called import told_apart


def names(paths: Sequence[str], ranks: Mapping[str, int]) -> dict[str, str]:
    """By recording: what its file is called, before the suffix. Those of one name have their folder's before it, as many
    folders as tell them apart; a number where these do not. What a profiler has named is called by its folder, and by its rank,
    as far as it is among `ranks`, or its time."""
    given = told_apart(paths, ranks)
    own = {path: given.get(path, stem(path)) for path in paths}
    folders = {path: os.path.dirname(path).replace("\\", "/").split("/") for path in paths}
    found = {path: _below(folders[path], own[path], int(path in given)) or stem(path) for path in paths}
    for deep in range(1, 1 + max((len(above) for above in folders.values()), default=0)):
        if not (twice := _twice(found)):
            break
        for path in twice:
            found[path] = _below(folders[path], own[path], deep + (path in given)) or stem(path)
    taken = Counter[str]()
    for path in _twice(found):
        name = found[path]
        taken[name] += 1
        found[path] = f"{name}-{taken[name]}" if taken[name] > 1 else name
    return found


def _below(folders: Sequence[str], own: str, deep: int) -> str:
    """A name with so many of the folders above it."""
    above = folders[len(folders) - min(deep, len(folders)) :]
    return "-".join([part for part in (*above, own) if part not in ("", ".", "..")])


def _twice(found: dict[str, str]) -> list[str]:
    """The recordings whose name another has, too."""
    count = Counter(found.values())
    return [path for path, name in found.items() if count[name] > 1]
