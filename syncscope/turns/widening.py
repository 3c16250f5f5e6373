"""Functions that have more parameters in one version than in another, with defaults: in all versions they get all of them.

A call that is right in its own version is right then, whichever version the function is of: what a version does not know it
leaves alone. Without a default a call of another version would lack an argument, and beside `*args` or `**kwargs` one might be
taken for another: such heads stay as they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from copy import deepcopy

from syncscope.turns.statements import FUNCTIONS, equal

Function = ast.FunctionDef | ast.AsyncFunctionDef
Parameter = tuple[ast.arg, ast.expr | None]


def widen(trees: Iterable[ast.Module]) -> None:
    """Give each function that all of these have the parameters that any of them has, in place, where that is possible."""
    first, *others = (_functions(tree.body) for tree in trees)
    for name, function in first.items():
        versions = [function, *(found[name] for found in others if name in found)]
        if len(versions) <= len(others) or all(equal(function.args, other.args) for other in versions):
            continue
        if (wide := _wide([version.args for version in versions])) is not None:
            for version in versions:
                version.args = _at(version, wide)


def _functions(body: list[ast.stmt]) -> dict[str, Function]:
    """Functions of a module and methods of its classes, by their names; of a name that is given twice none."""
    found: dict[str, Function | None] = {}
    for name, function in _named(body, ""):
        found[name] = None if name in found else function
    return {name: function for name, function in found.items() if function is not None}


def _named(body: list[ast.stmt], within: str) -> Iterator[tuple[str, Function]]:
    for statement in body:
        if isinstance(statement, FUNCTIONS):
            yield within + statement.name, statement
        elif isinstance(statement, ast.ClassDef):
            yield from _named(statement.body, f"{within}{statement.name}.")


def _wide(heads: list[ast.arguments]) -> ast.arguments | None:
    """One list of parameters for all of these; None where there is none."""
    first = heads[0]
    if any(head.vararg or head.kwarg or head.posonlyargs for head in heads):
        return None
    longest = max(map(_positional, heads), key=len)
    for head in heads:
        own = _positional(head)
        if not _agree(own, longest) or any(default is None for _, default in longest[len(own) :]):
            return None
    named: dict[str, Parameter] = {}
    for head in heads:
        for arg, default in zip(head.kwonlyargs, head.kw_defaults, strict=True):
            if not _agree([named.setdefault(arg.arg, (arg, default))], [(arg, default)]):
                return None
    known = {arg.arg for arg, _ in longest}
    alike = all(len(head.kwonlyargs) == len(named) for head in heads)
    if known & named.keys() or not (alike or all(default is not None for _, default in named.values())):
        return None
    wide = deepcopy(first)
    wide.args, wide.defaults = [arg for arg, _ in longest], [default for _, default in longest if default is not None]
    wide.kwonlyargs, wide.kw_defaults = [arg for arg, _ in named.values()], [default for _, default in named.values()]
    return wide


def _positional(head: ast.arguments) -> list[Parameter]:
    without = len(head.args) - len(head.defaults)
    return list(zip(head.args, [*[None] * without, *head.defaults], strict=True))


def _agree(one: list[Parameter], other: list[Parameter]) -> bool:
    """Whether the parameters that both have are the same."""
    return all(equal(a, b) and equal(d, e) for (a, d), (b, e) in zip(one, other, strict=False))


def _at(function: Function, wide: ast.arguments) -> ast.arguments:
    """The parameters, with the line of the function that gets them: a line says of which version it is."""
    made = deepcopy(wide)
    for node in ast.walk(made):
        if isinstance(node, (ast.arg, ast.expr)):
            ast.copy_location(node, function)
    return made
