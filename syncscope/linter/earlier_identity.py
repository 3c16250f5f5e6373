"""By what baselines of earlier versions know a finding: the text of its lines, later its statement."""

from __future__ import annotations

import ast
import functools
import re
import tokenize

from syncscope.codemod.text import Text
from syncscope.linter.identity import of_lines, of_words, statement_around
from syncscope.linter.source import CFile, SourceFile
from syncscope.linter.suppressions import tokens
from syncscope.model.finding import Finding
from syncscope.model.same_code import words
from syncscope.opencl_c.rules import builtin

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


def fingerprints(version: int, source: SourceFile, finding: Finding) -> tuple[str, ...]:
    """What a baseline of this version may know a finding by: 1 by the text of its lines, 2 so what is of OpenCL C, and else by
    tokens, as 3; 4 by what its statement says. What is of C, or in no statement, is known as today."""
    if version == 1 or (version == 2 and finding.rule in builtin()):
        return (of_lines(finding.rule, source, finding.place.line, finding.end_line),)
    if finding.known_by.wait == finding.fingerprint or isinstance(source, CFile) or (file := _parsed(source)) is None:
        return (finding.fingerprint,)
    statement = statement_around(file, finding.span)
    said = of_words(finding.rule, b"" if statement is None else words(statement))
    return (said, of_words(finding.rule, b"" if statement is None else _tokens(file, statement)))[
        : 2 if version < 4 else 1
    ]


@functools.lru_cache(maxsize=4)  # of a file there may be hundreds of findings
def _parsed(source: SourceFile) -> Text | None:
    try:
        return Text(source.code, ast.parse(source.code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # which is the finding
        return None


def _tokens(file: Text, statement: ast.stmt) -> bytes:
    """The text of a statement, of a compound one up to its body, as Python's tokens have it: versions of Python cut f-strings
    into other tokens, so none of these is told from the next."""
    span = file.span(statement)
    body = next((b for name in ("body", "cases") if (b := getattr(statement, name, None))), None)
    end = file.span(body[0].pattern if isinstance(statement, ast.Match) else body[0]).start if body else span.end
    words = "".join(t.string for t in tokens(file.code[span.start : end]) if t.type not in LAYOUT)
    return BEFORE_A_BRACKET.sub("", words).translate(FORMATTED).replace("{{", "{").replace("}}", "}").encode()
