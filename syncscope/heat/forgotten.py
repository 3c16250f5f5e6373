"""What a function keeps and takes away again: it is made anew in each step, and not the first time alone."""

from __future__ import annotations

import ast
import re

from syncscope.project.syntax import name_of, walk

_DEFINED = re.compile(rb"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)


def forgets(function: ast.FunctionDef | ast.AsyncFunctionDef, kept: str, source: bytes) -> bool:
    """Whether a function sets what it keeps, `self.masks`, to None: itself, or by a method that it calls of its own object.

    `source` is the text of its file; methods are looked up there by their names.
    """
    within = {
        name.decode()
        for at in re.finditer(rb"\b%b\s*(?::[^=\n]+)?=\s*None\b" % re.escape(kept.encode()), source)
        if (name := _defining(source, at.start())) and name != b"__init__"
    }
    if not within:
        return False
    return function.name in within or any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and name_of(node.func.value) == "self"
        and node.func.attr in within
        for node in walk(function)
    )


def _defining(source: bytes, at: int) -> bytes:
    """The name of the function above a place in a text."""
    return next(reversed(_DEFINED.findall(source, 0, at)), b"")
