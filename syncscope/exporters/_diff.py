"""A unified diff, as `patch` and `git apply` take it."""

from __future__ import annotations

import difflib
import os

from syncscope.model.finding import Fix
from syncscope.model.words import visible

CODES = {"+": 32, "-": 31, "@": 36}  # green, red, cyan


def unified(name: str, before: bytes, after: bytes, *, color: bool = False) -> str:
    """What changes in the file of that name; "" where nothing does."""
    old, new = (text.decode("utf-8", "replace").splitlines(keepends=True) for text in (before, after))
    path = visible(as_patched(name))
    path += "\t" * (" " in path)  # or `patch` takes the name for one that ends at the space
    rows = []
    for row in difflib.unified_diff(old, new, f"a/{path}", f"b/{path}"):
        whole = row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n"
        code = CODES.get(row[0]) if color and not row.startswith(("+++", "---")) else None
        rows.append(f"\x1b[{code}m{whole[:-1]}\x1b[0m\n" if code else whole)
    return "".join(rows)


def as_patched(name: str) -> str:
    """The name of a file for who applies a patch where it was made: of one below that folder as it is found from there."""
    if os.path.isabs(name) and not (inside := os.path.relpath(name)).startswith(os.pardir):
        return inside
    return name.lstrip("/")


def of_fix(fix: Fix, name: str, source: bytes) -> str:
    """What a fix changes in a source of that name; its edits do not overlap."""
    after = source
    for edit in sorted(fix.edits, key=lambda e: e.span, reverse=True):
        after = after[: edit.span.start] + edit.text.encode() + after[edit.span.end :]
    return unified(name, source, after)
