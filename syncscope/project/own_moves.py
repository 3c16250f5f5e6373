"""Classes of a project's own whose `to` or `cuda` takes a device and nothing else: what is moved may be one,
`samples.to(device)`."""

from __future__ import annotations

import ast
import os
import re

from syncscope.project.folders import content, located, of_texts, root_of, sources
from syncscope.project.syntax import name_of, statements

MOVES = re.compile(rb"def (?:to|cuda)\(")
_OF_MODELS = frozenset(("forward", "generate"))


def moves_its_own(path: str) -> bool:
    """Whether the project around a file has such a class."""
    path = located(path)
    return in_project(root_of(os.path.dirname(path))) if os.path.exists(path) else False


@of_texts
def in_project(root: str) -> bool:
    """Whether the files of a project hold such a class."""
    return any(
        MOVES.search(code) and (tree := parsed(code)) is not None and has_own_move(tree)
        for code in map(content, sources(root))
    )


def parsed(code: bytes) -> ast.Module | None:
    """The tree of a file; None where it cannot be read."""
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def has_own_move(tree: ast.Module) -> bool:
    """Whether a file holds such a class, that is no module of torch: those are no batches."""
    for cls in (n for n in statements(tree) if isinstance(n, ast.ClassDef)):
        if any((name_of(base) or "").endswith("Module") for base in cls.bases):
            continue
        methods = [each for each in cls.body if isinstance(each, ast.FunctionDef)]
        runs = not _OF_MODELS.isdisjoint(each.name for each in methods)  # what wraps a model has a `cuda` for that
        for method in methods:
            if method.name == "to" or (method.name == "cuda" and not runs):
                a = method.args
                named = {p.arg for p in (*a.args, *a.kwonlyargs)}
                asked = len(a.posonlyargs) + len(a.args) - len(a.defaults)  # itself, and the device
                if asked <= 2 and "non_blocking" not in named and a.kwarg is None:
                    return True
    return False
