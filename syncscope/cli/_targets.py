"""What the reports of several recordings are called, each in a file of its own."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

from syncscope.exporters import stem


def names(paths: Sequence[str]) -> dict[str, str]:
    """By recording: what its file is called, before the suffix. Those of one name have their folder's before it, as many
    folders as tell them apart; a number where these do not."""
    found = {path: stem(path) for path in paths}
    folders = {path: os.path.dirname(path).replace("\\", "/").split("/") for path in paths}
    for deep in range(1, 1 + max((len(above) for above in folders.values()), default=0)):
        if not (twice := _twice(found)):
            break
        for path in twice:
            above = [part for part in folders[path][-deep:] if part not in ("", ".", "..")]
            found[path] = "-".join([*above, stem(path)])
    taken = Counter[str]()
    for path in _twice(found):
        name = found[path]
        taken[name] += 1
        found[path] = f"{name}-{taken[name]}" if taken[name] > 1 else name
    return found


def _twice(found: dict[str, str]) -> list[str]:
    """The recordings whose name another has, too."""
    count = Counter(found.values())
    return [path for path, name in found.items() if count[name] > 1]
