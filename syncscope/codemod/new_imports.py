"""Imports that a fix brings: where formatters would have them, among those at the head of the file."""

from __future__ import annotations

import ast
import itertools
import re
import sys
from collections.abc import Sequence

from syncscope.codemod.text import Text, line_end
from syncscope.model.finding import Edit
from syncscope.model.source import Span

PREAMBLE = re.compile(
    rb"(?:#!.*\n)?(?:[ \t\f]*#.*c[o0]ding[:=].*\n)?"
)  # the linter writes c0ding for what it has decoded
LICENCE = re.compile(rb"(?:#.*\r?\n)+\r?\n")


def import_edit(file: Text, text: str) -> Edit:
    """An import among those at the head of the file, where formatters would have it, else after its docstring."""
    body = file.tree.body
    head = list(
        itertools.takewhile(lambda s: not isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)), body)
    )
    found = [s for s in head if isinstance(s, (ast.Import, ast.ImportFrom))]
    torch = [s for s in found if _package(s) == "torch"]
    whole = [s for s in torch if isinstance(s, ast.Import)]
    ours = [s for s in found if isinstance(s, ast.ImportFrom) and s.level]
    standard = [s for s in found if _package(s) in sys.stdlib_module_names]
    after: Sequence[ast.stmt] = [s for s in found if s not in ours]
    before: Sequence[ast.stmt] = torch or ours
    if text in ("import math", "import functools"):
        after = [s for s in standard if _package(s) != "__future__"]
        before = [] if after else [s for s in found if _package(s) != "__future__"][:1]
        if after and all(s.col_offset == 0 for s in after):  # `import` before `from`, by name
            lower = [s for s in after if isinstance(s, ast.Import) and _package(s) < _package_of(text)]
            if not lower:
                at = file.starts[after[0].lineno - 1]
                return Edit(Span(at, at), f"{text}\n")
            after = lower
    elif text != "import torch" and torch:
        after, before = whole or torch, []
    if before is ours and (others := [s for s in after if s not in standard and s.col_offset == 0]):
        whole = [s for s in others if isinstance(s, ast.Import) and _package(s) < _package_of(text)]
        after, before = whole, [] if whole else others[:1]  # among what is installed, where formatters would have it
    if before and before[0].col_offset == 0:
        at = file.starts[before[0].lineno - 1]
        gap = "\n" if _package_of(text) in sys.stdlib_module_names else ""
        return Edit(Span(at, at), f"{text}\n{gap}")
    docstring = body[:1] if body and ast.get_docstring(file.tree, clean=False) is not None else []
    last = next(reversed(after or found or docstring), None)
    if last is None:
        at = _preamble(file)
        return Edit(Span(at, at), f"{text}\n\n" if LICENCE.search(file.code, 0, at) else f"{text}\n")
    at = line_end(file, last)
    newline = "\n" if at and not file.code[:at].endswith(b"\n") else ""
    return Edit(Span(at, at), f"{newline}{text}\n")


def _preamble(file: Text) -> int:
    """The end of `#!` and the encoding, which must stay on the first two lines, and of a licence, which an empty line ends."""
    found = PREAMBLE.match(file.code)
    assert found is not None  # it takes nothing, too
    licence = LICENCE.match(file.code, found.end())
    return licence.end() if licence else found.end()


def _package_of(text: str) -> str:
    return text.split()[1].partition(".")[0]


def _package(statement: ast.Import | ast.ImportFrom) -> str:
    if isinstance(statement, ast.ImportFrom):
        return "" if statement.level else (statement.module or "").partition(".")[0]
    return statement.names[0].name.partition(".")[0]
