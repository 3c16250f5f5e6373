"""Fixes that are left to people: on a line whose `allow` names no rule that there is, and where a comment would be lost."""

from __future__ import annotations

import tokenize
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from syncscope.linter.source import SourceFile
from syncscope.linter.suppressions import NO_RULE, Comment, tokens
from syncscope.model.finding import Finding, Fix
from syncscope.model.source import Span


def spared(
    source: SourceFile, findings: Sequence[Finding], comments: Iterable[Comment], known: Collection[str]
) -> list[Finding]:
    """The findings, without the fixes that are left to people; `known` are the names that an `allow` may have."""
    misspelt = [c for c in comments if c.ours and not c.strange and c.rules != NO_RULE and not c.rules <= {*known}]
    if not misspelt and not any(f.fix is not None and _speaks(source, f.fix) for f in findings):
        return [*findings]
    lines = {line for comment in misspelt for line in range(comment.first, comment.last + 1)}
    written = _comments(source)

    def is_spared(fix: Fix) -> bool:
        at = (line for edit in fix.edits for line in _lines(source, edit.span))
        return not lines.isdisjoint(at) or _loses(fix, written)

    return [replace(f, fix=None, advice=f.fix) if f.fix is not None and is_spared(f.fix) else f for f in findings]


def _speaks(source: SourceFile, fix: Fix) -> bool:
    """Whether there may be a comment in what a fix replaces."""
    return any(source.code.find(b"#", edit.span.start, edit.span.end) >= 0 for edit in fix.edits)


def _lines(source: SourceFile, span: Span) -> range:
    """The lines in which something is replaced; what is put in front of a line is in none."""
    first = source.position(span.start)[0]
    return range(first, source.position(span.end)[0] + 1 if span.end > span.start else first)


def _loses(fix: Fix, written: list[tuple[int, str]]) -> bool:
    """Whether a comment stands in what a fix replaces, and in nothing that it writes."""
    text = "\n".join(edit.text for edit in fix.edits)
    for edit in fix.edits:
        begin = bisect_left(written, (edit.span.start, ""))
        end = bisect_left(written, (edit.span.end, ""))
        if any(comment not in text for _, comment in written[begin:end]):
            return True
    return False


def _comments(source: SourceFile) -> list[tuple[int, str]]:
    """Where each comment of a file begins, and what it says."""
    found = []
    for token in tokens(source.code):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            start = source.starts[line - 1]
            stop = source.code.find(b"\n", start)
            row = source.code[start : stop if stop >= 0 else None].decode()
            found.append((start + len(row[:column].encode()), token.string))
    return found
