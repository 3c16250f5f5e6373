"""What a function keeps and takes away again: it is made anew in each step, and not the first time alone."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from functools import lru_cache

from syncscope.heat.loops import LOOPS, trains
from syncscope.project.syntax import dotted, name_of, statements, walk

Function = ast.FunctionDef | ast.AsyncFunctionDef

_DEFINED = re.compile(rb"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)


def forgets(function: ast.FunctionDef | ast.AsyncFunctionDef, kept: str, source: bytes) -> bool:
    """Whether a function sets what it keeps, `self.masks`, to None: itself, or by a method that it calls of its own object.

    `source` is the text of its file; methods are looked up there by their names.
    """
    within = emptying(kept, source)
    if not within:
        return False
    return function.name in within or any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and name_of(node.func.value) == "self"
        and node.func.attr in within
        for node in walk(function)
    )


def emptying(kept: str, source: bytes) -> set[str]:
    """The functions of a file, but for `__init__`, that set what is kept in `self.masks` to None, or empty it."""
    name = re.escape(kept.encode())
    gone = rb"\b%b(?:\s*(?::[^=\n]+)?=\s*(?:None\b|\{\s*\}|dict\(\s*\))|\.clear\(\s*\))" % name
    return {_defining(source, at.start()) for at in re.finditer(gone, source)} - {"", "__init__"}


def _defining(source: bytes, at: int) -> str:
    """The name of the function above a place in a text."""
    starts, names = _defined(source)
    above = bisect_right(starts, at)
    return names[above - 1] if above else ""


@lru_cache(maxsize=4)
def _defined(source: bytes) -> tuple[list[int], list[str]]:
    """Where the functions of a file begin, and what they are called."""
    found = [*_DEFINED.finditer(source)]
    return [each.start() for each in found], [each[1].decode() for each in found]


def is_fleeting(scope: Function | ast.Module, at: ast.stmt, source: bytes, path: str) -> bool:
    """Whether what a name holds is another in each step: it is an argument, or is made by the function, and not before the
    training loop in which it is asked. Another name for what an object keeps is none, nor is one of the file.
    """
    name = path.partition("[")[0]
    if not isinstance(scope, ast.Module) and any(
        each.arg == name for each in ast.walk(scope.args) if isinstance(each, ast.arg)
    ):
        return True
    bound = [
        each
        for each in walk(scope)
        if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store)
    ]
    kept = {
        id(target)
        for each in statements(scope)
        if isinstance(each, ast.Assign)
        and "." in dotted(each.value.value if isinstance(each.value, ast.Subscript) else each.value)
        for target in each.targets
    }
    if all(id(each) in kept for each in bound):
        return False
    return not any(
        isinstance(loop, LOOPS)
        and _holds(loop, at)
        and not any(_holds(loop, each) for each in bound)
        and trains(loop, getattr(scope, "name", ""), source)
        for loop in statements(scope)
    )


def _holds(loop: ast.stmt, at: ast.AST) -> bool:
    return loop.lineno <= at.lineno and (at.end_lineno or 0) <= (loop.end_lineno or 0)  # type: ignore[attr-defined]
