"""Walks over syntax trees: the nodes of `ast.walk` in its order, found several times as fast.

Contexts and operators are left out: one object of them serves a whole tree, so they have no place of their own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from syncscope.project.of_file import kept

_PLAIN = frozenset(
    """arg asname attr conversion ctx id is_async kind kwd_attrs level module name op ops rest simple type_comment
    type_ignores""".split()
)  # fields that hold no nodes, or none that counts
_SPARSE = frozenset(("keys", "kw_defaults"))  # lists in which None stands for what is not written
_BLOCKS = frozenset("body handlers orelse finalbody cases".split())


class _Fields(dict[type, tuple[str, ...]]):
    """The fields that count, of each kind of node."""

    def __init__(self, counts: Callable[[str], bool]) -> None:
        super().__init__()
        self.counts = counts

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        found = self[kind] = tuple(filter(self.counts, kind._fields))
        return found


_FIELDS = _Fields(lambda field: field not in _PLAIN)
_FIELDS.update(dict.fromkeys((ast.Constant, ast.Global, ast.Nonlocal, ast.MatchSingleton), ()))
if hasattr(ast, "TypeAlias"):  # from Python 3.12 on
    _FIELDS[ast.TypeAlias] = ("name", "type_params", "value")
_HELD = _Fields(_BLOCKS.__contains__)


def walk(root: ast.AST) -> list[ast.AST]:
    """This node and every one below it."""
    todo = [root]
    for node in todo:  # grows while it is gone through
        for field in _FIELDS[node.__class__]:
            value: Any = getattr(node, field, None)
            if value.__class__ is list:
                todo += value if field not in _SPARSE else [each for each in value if each is not None]
            elif value is not None:
                todo.append(value)
    return todo


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below this one."""
    found: list[ast.AST] = []
    for field in _FIELDS[node.__class__]:
        value: Any = getattr(node, field, None)
        if value.__class__ is list:
            found += value if field not in _SPARSE else [each for each in value if each is not None]
        elif value is not None:
            found.append(value)
    return found


@kept(32)  # asked for each wait of a function, and there may be thousands
def parents(root: ast.AST) -> dict[ast.AST, ast.AST]:
    """Every node below this one, and the node directly around it: for all who ask, who leave it as it is."""
    found: dict[ast.AST, ast.AST] = {}
    todo = [root]
    for node in todo:
        for field in _FIELDS[node.__class__]:
            value: Any = getattr(node, field, None)
            if value.__class__ is list:
                if field in _SPARSE:
                    value = [each for each in value if each is not None]
                todo += value
                for each in value:
                    found[each] = node
            elif value is not None:
                todo.append(value)
                found[value] = node
    return found


def held(node: ast.AST) -> list[ast.AST]:
    """The statements, handlers and cases directly in a module, a statement, a handler or a case."""
    return [each for field in _HELD[node.__class__] for each in getattr(node, field)]


def statements(root: ast.AST) -> list[ast.AST]:
    """This module or statement, and the statements, handlers and cases in it: no expression is looked into."""
    todo = [root]
    for node in todo:
        for field in _HELD[node.__class__]:
            todo += getattr(node, field)
    return todo


@kept(8)  # asked for each test in a class behind which something waits
def assigned(scope: ast.AST) -> dict[str, list[ast.expr]]:
    """What the statements of a function, a class or a module assign, by the dotted names that they assign it to."""
    found: dict[str, list[ast.expr]] = {}
    for each in statements(scope):
        if isinstance(each, ast.Assign):
            for target in each.targets:
                match target, each.value:
                    case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
                        for name, value in zip(names, values, strict=True):
                            found.setdefault(dotted(name), []).append(value)
                    case _:
                        found.setdefault(dotted(target), []).append(each.value)
    return found


def default_of(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> ast.expr | None:
    """What a parameter is where nobody gives it."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args][::-1]
    pairs = [
        *zip(positional, arguments.defaults[::-1], strict=False),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return next((default for each, default in pairs if each.arg == name), None)


def expressions(statement: ast.AST) -> list[ast.AST]:
    """The nodes in a statement, a handler or a case that are in no other one below it."""
    found: list[ast.AST] = []
    for field in _FIELDS[statement.__class__]:
        value: Any = getattr(statement, field, None)
        for each in value if value.__class__ is list else (value,):
            if field not in _BLOCKS and each is not None:
                found += walk(each)
    return found


def dotted(node: ast.expr | None) -> str:
    """`a.b.c` as text; "" when it is not such a chain."""
    at: Any = node  # its class is asked: an `isinstance` would cost twice as much
    word = ""
    while at.__class__ is ast.Attribute:
        word = f".{at.attr}{word}"
        at = at.value
    return f"{at.id}{word}" if at.__class__ is ast.Name else ""


def each_of(node: ast.expr) -> list[ast.expr]:
    """The parts of a tuple that is written out: indices, targets, types; anything else is its only part."""
    return node.elts if isinstance(node, ast.Tuple) else [node]


def name_of(node: ast.AST | None) -> str:
    """The name or the attribute that an expression is; "" for any other."""
    kind = node.__class__  # asked of most nodes of a file: an `isinstance` would cost twice as much
    return node.attr if kind is ast.Attribute else node.id if kind is ast.Name else ""  # type: ignore[union-attr]


def text_of(node: ast.AST | None) -> str | None:
    """The string that is written out; None where this is none."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def last_word(node: ast.expr | None) -> str:
    """What people call a value: the name, the attribute or the key by which it is reached."""
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return key if isinstance(key, str) else last_word(node.value)
    return name_of(node)


NO_GRAD = frozenset(("no_grad", "inference_mode"))


def without_gradients(node: ast.With | ast.AsyncWith) -> bool:
    """Whether it is `with torch.no_grad()`."""
    return any(isinstance(each.context_expr, ast.Call) and _is_no_grad(each.context_expr.func) for each in node.items)


def _is_no_grad(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in NO_GRAD
