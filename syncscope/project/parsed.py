"""Files that were parsed, kept for those that import them."""

from __future__ import annotations

import ast
from typing import Any


class Parsed:
    """A file as it was read, under its normalised path. Its tree must not change."""

    __slots__ = ("__weakref__", "path", "source", "tree", "usage")

    def __init__(self, path: str, source: bytes, tree: ast.Module) -> None:
        self.path = path
        self.source = source
        self.tree = tree
        self.usage: Any = None  # how its names are used, once that was asked: what is learnt of a file is kept with it


class ParsedFiles:
    """The files that were asked for last, up to so many bytes of source."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._files: dict[str, Parsed] = {}  # what was not asked for longest comes first
        self._held = 0

    def get(self, path: str) -> Parsed | None:
        """The file of this path."""
        found = self._files.pop(path, None)
        if found is not None:
            self._files[path] = found
        return found

    def put(self, parsed: Parsed) -> None:
        """Keep a file."""
        self.pop(parsed.path)
        self._files[parsed.path] = parsed
        self._held += len(parsed.source)
        while self._held > self.most:
            self.pop(next(iter(self._files)))

    def pop(self, path: str) -> None:
        """Keep a file no longer."""
        gone = self._files.pop(path, None)
        self._held -= len(gone.source) if gone is not None else 0
