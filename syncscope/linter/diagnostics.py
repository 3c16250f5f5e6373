"""What the engine itself reports: files that are no Python, and comments that silence nothing."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Collection
from dataclasses import replace

from syncscope.discover import did_you_mean
from syncscope.linter import suppressions
from syncscope.linter.config import BUILT_IN
from syncscope.linter.identity import of_lines
from syncscope.linter.notebooks import Notebook
from syncscope.linter.source import SourceFile
from syncscope.model.finding import Finding, Fix, Identity
from syncscope.model.source import Place, Span

_OF_3_12 = re.compile(rb"\s*(?:(?:(?:async\s+)?def|class)\s+\w+\[|type\s+\w)")  # `class Kept[T]:`, `type Rows = ...`


def unparsable(path: str, error: SyntaxError, source: SourceFile) -> Finding:
    """A file that is no Python (any more): Python 2, a merge that was not finished, a broken edit."""
    line = min(max(error.lineno or 1, 1), len(source.starts))
    row = source.code[source.starts[line - 1] :].split(b"\n", 1)[0]
    message = error.msg or "invalid syntax"
    if row.startswith((b"<<<<<<<", b"=======", b">>>>>>>")):
        message = "a merge conflict that is not resolved"
    elif "Missing parentheses in call to 'print'" in message or "multiple exception types must be" in message:
        message = f"Python 2? {message}"
    elif sys.version_info < (3, 12) and _OF_3_12.match(row):
        message = f"Python 3.12? {message} in {sys.version_info.major}.{sys.version_info.minor}, which runs syncscope"
    start = source.starts[line - 1]
    end = start + len(row.rstrip())
    column = min(max(error.offset or 1, 1), len(row.decode("utf-8", "replace")) + 1)
    return Finding(
        rule="syntax-error",
        place=Place(path, line),
        column=column,
        end_line=line,
        end_column=max(column, len(row.rstrip().decode("utf-8", "replace")) + 1),
        span=Span(start, end),
        message=f"not linted: {message}",
        confidence=3,
        severity="error",
        fingerprint=(its := of_lines("syntax-error", source, line, line)),
        known_by=Identity(its),
    )


def broken_cell(source: Notebook, number: int, error: SyntaxError) -> Finding:
    """A cell that is no Python; the others are linted."""
    cell = next(c for c in source.cells if c.number == number)
    alone = unparsable(source.path, error, SourceFile(source.path, cell.text, cell.text))
    line = cell.line + alone.place.line - 1
    span = Span(alone.span.start + cell.start, alone.span.end + cell.start)
    return replace(alone, place=Place(source.path, line), end_line=line, span=span)


def unused_allow(source: SourceFile, comment: suppressions.Comment, known: Collection[str]) -> Finding:
    """A suppression that silences nothing; `known` are the rules and families that it could name."""
    (line, column), (_, end_column) = source.position(comment.span.start), source.position(comment.span.end)
    said, fix = _unused(source, comment, known)
    return Finding(
        rule="unused-allow",
        place=Place(source.path, line),
        column=column,
        end_line=line,
        end_column=end_column,
        span=comment.span,
        message=said,
        confidence=3,
        severity="note",
        fix=fix,
        fingerprint=(its := of_lines("unused-allow", source, line, line)),
        known_by=Identity(its),
    )


def _unused(source: SourceFile, comment: suppressions.Comment, known: Collection[str]) -> tuple[str, Fix | None]:
    """What is wrong with a suppression that silences nothing, and what mends that; None where somebody meant it."""
    if comment.strange:
        said = f"`syncscope: {comment.strange}` silences nothing: did you mean `{comment.meant}`?"
        return said, suppressions.allowing(source.code, comment)
    if comment.rules == suppressions.NO_RULE:
        return (
            "`allow[]` names no rule, so it silences none: name it, or leave out the brackets, which allows all",
            None,
        )
    named = ", ".join(sorted(comment.rules))
    said = f"`allow[{named}]` silences nothing here" if named else "this `allow` silences nothing"
    choices = [*known, *BUILT_IN]
    strange = sorted(comment.rules - {*choices})
    if not strange:
        return said, suppressions.removal(source.code, comment)
    meant = "; ".join(did_you_mean(rule, choices, "`syncscope explain` lists them all") for rule in strange)
    fix = None
    if len(strange) == 1 and (near := difflib.get_close_matches(strange[0], choices, 1)):
        fix = suppressions.renaming(source.code, comment, strange[0], near[0])
    return f"{said}: no rule is called {', '.join(strange)}; {meant}", fix


def deepest_line(source: SourceFile) -> int:
    """The line with the deepest indentation or nesting, to point at."""
    rows = source.code.split(b"\n")
    return max(range(len(rows)), key=lambda n: (rows[n].count(b"(") + rows[n].count(b"["), len(rows[n]))) + 1
