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

# the linter writes c0ding for what it has decoded
PREAMBLE = re.compile(rb"(?:#!.*\n)?(?:[ \t\f]*#.*c[o0]ding[:=].*\n)?")
OF_PYTHON = ("import math", "import functools")  # what fixes write of Python's own
LICENCE = re.compile(rb"(?:#.*\r?\n)+\r?\n")

_Import = ast.Import | ast.ImportFrom


def import_edit(file: Text, text: str) -> Edit:
    """An import among those at the head of the file, where formatters would have it, else after its docstring."""
    body = file.tree.body
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    head = itertools.takewhile(lambda s: not isinstance(s, defined), body)
    found: list[_Import] = [s for s in head if isinstance(s, (ast.Import, ast.ImportFrom))]
    after, before = _of_python(found, text) if text in OF_PYTHON else _installed(found, text)
    if before is not None and before.col_offset == 0:
        at = file.starts[before.lineno - 1]
        apart = _package_of(text) in sys.stdlib_module_names and _package(before) not in sys.stdlib_module_names
        return Edit(Span(at, at), f"{text}\n" + "\n" * apart)
    docstring = body[:1] if body and ast.get_docstring(file.tree, clean=False) is not None else []
    last = next(reversed(after or found or docstring), None)
    if last is None:
        at = _preamble(file)
        return Edit(Span(at, at), f"{text}\n\n" if LICENCE.search(file.code, 0, at) else f"{text}\n")
    at = line_end(file, last)
    newline = "\n" if at and not file.code[:at].endswith(b"\n") else ""
    return Edit(Span(at, at), f"{newline}{text}\n")


def _of_python(found: Sequence[_Import], text: str) -> tuple[Sequence[ast.stmt], _Import | None]:
    """After which imports one of Python's own goes, and before which."""
    ours = [s for s in found if _package(s) in sys.stdlib_module_names and _package(s) != "__future__"]
    if not ours:
        return [], next((s for s in found if _package(s) != "__future__"), None)
    if any(s.col_offset for s in ours):
        return ours, None
    lower = [s for s in ours if isinstance(s, ast.Import) and _package(s) < _package_of(text)]
    return (lower, None) if lower else ([], ours[0])  # `import` before `from`, by name


def _installed(found: Sequence[_Import], text: str) -> tuple[Sequence[ast.stmt], _Import | None]:
    """After which imports one of what is installed goes, and before which."""
    torch = [s for s in found if _package(s) == "torch"]
    ours = [s for s in found if isinstance(s, ast.ImportFrom) and s.level]
    others = [s for s in found if s not in ours]
    if torch:
        whole = [s for s in torch if isinstance(s, ast.Import)]
        return (others, torch[0]) if text == "import torch" else (whole or torch, None)
    among = [s for s in others if _package(s) not in sys.stdlib_module_names and s.col_offset == 0]
    if among:
        lower = [s for s in among if isinstance(s, ast.Import) and _package(s) < _package_of(text)]
        return (lower, None) if lower else (others, among[0])
    return others, ours[0] if ours else None


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
