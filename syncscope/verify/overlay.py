"""Other bytes for some files, in the process that imports them: names and folders stay those of the user's files."""

from __future__ import annotations

import ast
import io
import linecache
import os
from collections.abc import Callable, Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any


def install(copies: Mapping[str, str]) -> None:
    """From now on Python runs the copy in place of each of these files (absolute paths, links resolved)."""
    content = {path: Path(copy).read_bytes() for path, copy in copies.items()}
    put(content)
    for path, known in content.items():
        _show(path, known)


def put(
    content: Mapping[str, bytes | ast.Module], other: Callable[[str], ast.Module | None] = lambda path: None
) -> None:
    """The same with texts, or trees: `compile` takes both. Of a tree nothing is shown but what stands in the file. `other` may
    give a tree for any further file."""
    opened, compiled = io.open_code, SourceFileLoader.get_code

    def open_code(path: str) -> Any:
        known = content.get(os.path.realpath(path)) or other(path)
        if known is None:
            return opened(path)
        return io.BytesIO(known) if isinstance(known, bytes) else _Tree(known)

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        known = content.get(os.path.realpath(path)) or other(path)
        if known is None:
            return compiled(self, fullname)
        if isinstance(known, bytes):
            _show(path, known)
        code: CodeType = self.source_to_code(known, path)  # never from a cache, and never into one
        return code

    io.open_code = open_code  # how `tracers.program` reads a script
    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]  # how Python imports


class _Tree:
    """A tree that is read as a file is."""

    def __init__(self, tree: ast.Module) -> None:
        self.read = lambda: tree

    def __enter__(self) -> _Tree:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _show(path: str, content: bytes) -> None:
    """Tracebacks and `inspect.getsource` show what runs; an entry without a time is never looked up again."""
    with io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", errors="replace") as file:
        linecache.cache[path] = len(content), None, file.readlines(), path
