"""By what a finding is known again in another version of its file: hashes that stay when lines move."""

from __future__ import annotations

import ast
import functools
import hashlib
import re
import tokenize
from dataclasses import replace

from syncscope.linter.source import SourceFile
from syncscope.linter.suppressions import tokens
from syncscope.model.fact import Site
from syncscope.model.finding import Finding
from syncscope.rules import Function, View

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
FORMATTED = str.maketrans({"'": '"', "(": "", ")": "", **dict.fromkeys(" \t\f\r\n\\", "")})
"""What a formatter may write otherwise."""


def identified(finding: Finding, site: Site, view: View) -> Finding:
    """The finding with its reasons, and with a hash of its rule and of the statement around its site, or the head of that:
    without comments and layout."""
    function = view.function(site)
    statement = function.statement(site.node)
    text = b"" if statement is None else function.once("its words", statement, lambda: _words(function, statement))
    return replace(finding, why=site.fact.why, fingerprint=_hash(finding.rule, text))


@functools.lru_cache(maxsize=64)  # of a line there may be thousands
def of_lines(rule: str, source: SourceFile, line: int, end_line: int) -> str:
    """A hash of the rule and the text of these lines without white space: of what is no statement of Python, and in the first
    form of baselines of all."""
    code = source.code[source.starts[line - 1] : source.starts[end_line] if end_line < len(source.starts) else None]
    return _hash(rule, *code.split())


def _hash(rule: str, *words: bytes) -> str:
    return hashlib.blake2b(b"\0".join([rule.encode(), *words]), digest_size=8).hexdigest()


def _words(function: Function, statement: ast.stmt) -> bytes:
    """The text of a statement, of a compound one up to its body, as Python's tokens have it: versions of Python cut f-strings
    into other tokens, so none of these is told from the next."""
    span = function.file.span(statement)
    body = next((b for name in ("body", "cases") if (b := getattr(statement, name, None))), None)
    end = (
        function.file.span(body[0].pattern if isinstance(statement, ast.Match) else body[0]).start if body else span.end
    )
    words = "".join(t.string for t in tokens(function.file.code[span.start : end]) if t.type not in LAYOUT)
    return BEFORE_A_BRACKET.sub("", words).translate(FORMATTED).replace("{{", "{").replace("}}", "}").encode()
