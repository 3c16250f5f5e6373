"""By what a finding is known again in another version of its file: hashes that stay when lines move."""

from __future__ import annotations

import ast
import functools
import hashlib
import re
import tokenize
from dataclasses import replace

from syncscope.codemod.text import Text
from syncscope.linter.source import SourceFile
from syncscope.linter.suppressions import tokens
from syncscope.model.fact import Site
from syncscope.model.finding import Finding
from syncscope.model.source import Span
from syncscope.rules import View

LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
BEFORE_A_BRACKET = re.compile(r",(?=[)\]}])")
PLAIN = re.compile(rb"[\w\s()\[\]{}.,:;=+\-*/%@<>!&|^~]*+\Z")
FORMATTED = str.maketrans({"'": '"', "(": "", ")": "", **dict.fromkeys(" \t\f\r\n\\", "")})
"""What a formatter may write otherwise."""


def identified(finding: Finding, site: Site, view: View) -> Finding:
    """The finding with its reasons, and with a hash of its rule and of the statement around its site, or the head of that:
    without comments and layout."""
    function = view.function(site)
    statement = function.statement(site.node)
    text = b"" if statement is None else function.once("its words", statement, lambda: _words(function.file, statement))
    return replace(finding, why=site.fact.why, fingerprint=of_words(finding.rule, text))


def words_around(file: Text, at: Span) -> bytes | None:
    """The innermost statement of Python that holds these bytes, or the head of that, without comments and layout; None where
    none does."""
    spans = {each: file.span(each) for each in file.statements if isinstance(each, ast.stmt)}
    around = [each for each, its in spans.items() if its.start <= at.start and at.end <= its.end]
    return _words(file, min(around, key=lambda each: spans[each].end - spans[each].start)) if around else None


def of_words(rule: str, words: bytes) -> str:
    """A hash of the rule and what stays of a statement without comments and layout."""
    return _hash(rule, words)


@functools.lru_cache(maxsize=64)  # of a line there may be thousands
def of_lines(rule: str, source: SourceFile, line: int, end_line: int) -> str:
    """A hash of the rule and the text of these lines without white space: of what is no statement of Python, and in the first
    forms of baselines of others, too."""
    code = source.code[source.starts[line - 1] : source.starts[end_line] if end_line < len(source.starts) else None]
    return _hash(rule, *code.split())


def _hash(rule: str, *words: bytes) -> str:
    return hashlib.blake2b(b"\0".join([rule.encode(), *words]), digest_size=8).hexdigest()


def _words(file: Text, statement: ast.stmt) -> bytes:
    """The text of a statement, of a compound one up to its body, as Python's tokens have it: versions of Python cut f-strings
    into other tokens, so none of these is told from the next."""
    span = file.span(statement)
    body = next((b for name in ("body", "cases") if (b := getattr(statement, name, None))), None)
    end = file.span(body[0].pattern if isinstance(statement, ast.Match) else body[0]).start if body else span.end
    code = file.code[span.start : end]
    if PLAIN.match(code):  # all of it is tokens and white space
        words = "".join(code.decode().split())
    else:
        words = "".join(t.string for t in tokens(code) if t.type not in LAYOUT)
    return BEFORE_A_BRACKET.sub("", words).translate(FORMATTED).replace("{{", "{").replace("}}", "}").encode()
