"""Which files a program runs by `exec(open(...).read())`, as its text tells: those named in it, or on the command line."""

from __future__ import annotations

import ast
import os
from collections.abc import Sequence

from syncscope.project.syntax import text_of


def executed_files(tree: ast.Module, arguments: Sequence[str]) -> list[str] | None:
    """Paths, as they are opened; None where it may run code that is not seen so. `arguments` are those of the command."""
    paths: list[str] = []
    understood: set[int] = set()
    for node in ast.walk(tree):
        opened = _opened(node)
        if opened is None:
            continue
        if (path := text_of(opened)) is not None:
            paths.append(path)
        elif isinstance(opened, ast.Name) and _is_argument(opened.id, tree):
            paths += [given for given in arguments if os.path.isfile(given)]
        else:
            return None
        assert isinstance(node, ast.Call)
        understood.add(id(node.func))
    names = (node for node in ast.walk(tree) if id(node) not in understood)
    if any(
        (isinstance(n, ast.Name) and n.id == "exec") or (isinstance(n, ast.Attribute) and n.attr == "exec")
        for n in names
    ):
        return None
    return paths


def _opened(node: ast.AST) -> ast.expr | None:
    """`x` of `exec(open(x).read())`."""
    match node:
        case ast.Call(
            func=ast.Name("exec"),
            args=[
                ast.Call(
                    func=ast.Attribute(value=ast.Call(func=ast.Name("open"), args=[opened, *_]), attr="read"), args=[]
                ),
                *_,
            ],
        ):
            return opened
    return None


def _is_argument(name: str, tree: ast.Module, others: frozenset[str] = frozenset()) -> bool:
    """Whether a name is given nothing but arguments of the command: `for arg in sys.argv[1:]`, perhaps by another name."""
    found = False
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and _gives(node.target, name):
            if not _is_of_argv(node.iter):
                return False
            found = True
        elif isinstance(node, ast.Assign) and any(_gives(target, name) for target in node.targets):
            value = node.value
            if not _is_of_argv(value) and not (
                isinstance(value, ast.Name)
                and value.id not in others | {name}
                and _is_argument(value.id, tree, others | {name})
            ):
                return False
            found = True
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)) and _gives(node.target, name):
            return False
    return found


def _gives(target: ast.expr, name: str) -> bool:
    stored = (node for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return any(node.id == name for node in stored)


def _is_of_argv(value: ast.expr) -> bool:
    """`sys.argv`, or a part of it."""
    while isinstance(value, ast.Subscript):
        value = value.value
    return isinstance(value, ast.Attribute) and value.attr == "argv" and isinstance(value.value, ast.Name)
