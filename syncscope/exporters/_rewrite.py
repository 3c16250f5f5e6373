"""A fix as a unified diff, where the source is at hand."""

from __future__ import annotations

import difflib

from syncscope.model.finding import Fix
from syncscope.model.words import visible


def rewritten(fix: Fix, source: bytes) -> bytes:
    """The source with all edits of the fix; edits do not overlap."""
    for edit in sorted(fix.edits, key=lambda e: e.span, reverse=True):
        source = source[: edit.span.start] + edit.text.encode() + source[edit.span.end :]
    return source


def diff(fix: Fix, path: str, source: bytes) -> str:
    """What the fix changes, as a unified diff of `path`."""
    before, after = (
        text.decode(errors="replace").splitlines(keepends=True) for text in (source, rewritten(fix, source))
    )
    lines = difflib.unified_diff(before, after, f"a/{path}", f"b/{path}", n=2)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def line_of(source: bytes | None, number: int) -> str:
    """The text of a line (the first is 1), stripped and visible; empty where there is none."""
    lines = (source or b"").splitlines()
    return visible(lines[number - 1].decode(errors="replace").strip()) if 0 < number <= len(lines) else ""
