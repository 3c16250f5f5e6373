"""The tree of one function, from its part of the text of a file, or that of all of it."""

from __future__ import annotations

import ast
import re

from syncscope.project.outline import FunctionText

_DECORATOR = re.compile(rb"\n[ \t]*@\w")
_MOST_DECORATORS = 4


def parsed(function: FunctionText) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef | None, bytes]:
    """A function's tree, and the text that its lines count in; None where it is no Python by itself."""
    text = function.source[function.start + 1 : function.end]
    if text[:1].isspace():
        text = b"if True:\n" + text  # and what stands behind a class need not be as deep
    alone = _without_decorators(text)
    node = _first(alone)
    if node is None and alone != text:  # `@ w` in a sum over several lines
        node = _first(text)
    if node is None:  # decorators of what stands behind it over several lines
        for match in list(_DECORATOR.finditer(text))[: -_MOST_DECORATORS - 1 : -1]:
            text = text[: match.start() + 1]
            node = _first(text)
            if node is not None:
                break
    node = node.body[0] if isinstance(node, ast.If) else node
    return (node if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else None), text


def tree_of(source: bytes) -> ast.Module | None:
    """The tree of a file; None where it is no Python."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _without_decorators(text: bytes) -> bytes:
    """The text of a function without decorators at its end, each on a line: to fail over them takes as long as to parse it."""
    end = len(text)
    while (line := text.rfind(b"\n", 0, end)) >= 0 and (
        _DECORATOR.match(text, line, end) or not text[line:end].strip(b" \t\r\n")
    ):
        end = line
    return text[: end + 1]


def _first(text: bytes) -> ast.stmt | None:
    try:
        return ast.parse(text).body[0]
    except (SyntaxError, ValueError, RecursionError, MemoryError, IndexError):
        return None
