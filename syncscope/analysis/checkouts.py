"""Which file of one recording is which of another, where they were made in two checkouts of a project, or on two machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from syncscope.analysis.join import parts, same_end

Folder = tuple[str, ...]


def same_files(before: Iterable[str], after: Iterable[str]) -> dict[str, str]:
    """The path in the first recording of each path in the second, as far as it has one.

    The two folders are those from which on most files are named alike. Below them a file is the one of the same relative path;
    files that are in neither (libraries in other environments) are those whose paths end most alike, from two names on.
    """
    first, second = sorted(set(before)), sorted(set(after))
    votes = Counter(_folders(a, b) for b in second for a in first if same_end(a, b))
    if not votes:
        return {}
    # of as many votes, the folders that are highest: their files have the longest name in common
    one, other = min(votes, key=lambda folders: (-votes[folders], sum(map(len, folders)), folders))
    by_name = {parts(path)[len(one) :]: path for path in first if _below(path, one)}
    found = {}
    for path in second:
        if _below(path, other) and (same := by_name.get(parts(path)[len(other) :])):
            found[path] = same
    taken = set(found.values())
    for path in second:
        left = [
            a
            for a in first
            if a not in taken and same_end(a, path) > 1 and not (_below(a, one) and _below(path, other))
        ]
        if path not in found and left:
            found[path] = max(left, key=lambda a: same_end(a, path))
            taken.add(found[path])
    return found


def _folders(one: str, other: str) -> tuple[Folder, Folder]:
    """What stands before the part of two paths that is the same."""
    end = same_end(one, other)
    return parts(one)[:-end], parts(other)[:-end]


def _below(path: str, folder: Folder) -> bool:
    return parts(path)[: len(folder)] == folder
