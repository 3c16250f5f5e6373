"""By what a finding is known again in another version of its file: hashes that stay when lines move."""

from __future__ import annotations

import ast
import functools
import hashlib
from bisect import bisect_right
from dataclasses import replace
from typing import Any

from syncscope.codemod.text import Text
from syncscope.linter.source import SourceFile
from syncscope.model.fact import Site
from syncscope.model.finding import Finding
from syncscope.model.source import Span
from syncscope.rules import View

NO_WORDS = {"ctx", "kind", "type_comment", "type_params", "annotation", "returns", "simple"}
"""Fields of Python's syntax that say nothing of what is computed."""

BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case)


def identified(finding: Finding, site: Site, view: View) -> Finding:
    """The finding with its reasons, and with a hash of its rule and of the statement around its site, or the head of that: of
    what it says, not of how it is written."""
    function = view.function(site)
    statement = function.statement(site.node)
    text = b"" if statement is None else function.once("its words", statement, lambda: _words(statement))
    return replace(finding, why=site.fact.why, fingerprint=of_words(finding.rule, text))


def words_around(file: Text, at: Span) -> bytes | None:
    """What the innermost statement of Python says that holds these bytes, or the head of that; None where none does."""
    statement = statement_around(file, at)
    return None if statement is None else _words(statement)


def statement_around(file: Text, at: Span) -> ast.stmt | None:
    """The innermost statement of Python that holds these bytes."""
    line = bisect_right(file.starts, at.start)
    near = (s for s in file.statements if isinstance(s, ast.stmt) and s.lineno <= line <= (s.end_lineno or 0))
    spans = {each: file.span(each) for each in near}
    around = [each for each, its in spans.items() if its.start <= at.start and at.end <= its.end]
    return min(around, key=lambda each: spans[each].end - spans[each].start, default=None)


def of_words(rule: str, words: bytes) -> str:
    """A hash of the rule and of what a statement says."""
    return _hash(rule, words)


@functools.lru_cache(maxsize=64)  # of a line there may be thousands
def of_lines(rule: str, source: SourceFile, line: int, end_line: int) -> str:
    """A hash of the rule and the text of these lines without white space: of what is no statement of Python, and in the first
    forms of baselines of others, too."""
    code = source.code[source.starts[line - 1] : source.starts[end_line] if end_line < len(source.starts) else None]
    return _hash(rule, *code.split())


def _hash(rule: str, *words: bytes) -> str:
    return hashlib.blake2b(b"\0".join([rule.encode(), *words]), digest_size=8).hexdigest()


def _words(statement: ast.stmt) -> bytes:
    """What a statement says, a compound one up to its body: its syntax, with numbers and strings by their values.

    So nothing that a formatter writes otherwise (`1E5`, quotes, brackets, the commas before them, lines that are joined) is in
    it, and no annotation: `n: float = loss.item()` waits as before. No version of Python says it in other words.
    """
    words: list[str] = []
    todo: list[Any] = [statement]
    while todo:
        each = todo.pop()
        if isinstance(each, str):
            words.append(each)
            continue
        words.append("Assign" if isinstance(each, ast.AnnAssign) else type(each).__name__)
        inner: list[Any] = []
        for name, value in ast.iter_fields(each):
            several = value if isinstance(value, list) else [value]
            if name in NO_WORDS or not several or value is None or isinstance(several[0], BLOCKS):
                continue
            targets = isinstance(each, ast.AnnAssign) and name == "target"
            inner.append(f".targets {len(several)}" if targets else f".{name} {len(several)}")
            inner += [one if isinstance(one, ast.AST) else _value(one) for one in several]
        todo += reversed(inner)
    return "\n".join(words).encode()


def _value(value: object) -> str:
    """A name or a constant, alike in all versions of Python."""
    return hex(value) if type(value) is int else ascii(value)  # of long integers Python writes no decimals
