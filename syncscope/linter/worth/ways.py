"""Which of several waits of a function are met where it runs once: of two arms one is gone into."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from syncscope.codemod.evaluated import LEAVES
from syncscope.model.fact import Site
from syncscope.rules import Function

REPEATED = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_Arm = tuple[int, bool]  # the `id` of an `if`, and whether it is its second arm


def on_one_way(function: Function, nodes: Sequence[ast.AST]) -> int:
    """How many of these nodes of a function are met at most where it runs once: of two arms of an `if` one is gone into."""
    return _met([arms_around(function, node) for node in nodes], max)


def on_every_way(function: Function, nodes: Sequence[ast.AST]) -> int:
    """How many of them are met at least, wherever the arm is gone into that all of them stand in."""
    ways = [arms_around(function, node) for node in nodes]
    while all(ways) and len({way[0] for way in ways}) == 1:
        ways = [way[1:] for way in ways]
    return _met(ways, min)


def arms_around(function: Function, node: ast.AST) -> list[_Arm]:
    """The arms that a node stands in, from the outside in; behind an `if` that leaves it stands in the other one, but for
    those that raise: all that runs on comes by it."""
    found: list[_Arm] = []
    inner = node
    for outer in function.around(node):
        if isinstance(inner, ast.stmt):
            left = (each for each in left_before(function, inner) if not isinstance(each.body[-1], ast.Raise))
            found += [(id(each), True) for each in left][::-1]
        if isinstance(outer, ast.If) and inner is not outer.test:
            found.append((id(outer), any(inner is each for each in outer.orelse)))
        elif isinstance(outer, ast.IfExp) and inner is not outer.test:
            found.append((id(outer), inner is outer.orelse))
        inner = outer
    return found[::-1]


def left_before(function: Function, statement: ast.stmt) -> list[ast.If]:
    """The tests before a statement in its block that have to fail for it to be come to."""
    block = function.block(statement)
    before = block[: block.index(statement)] if statement in block else []
    return [n for n in before if isinstance(n, ast.If) and not n.orelse and isinstance(n.body[-1], LEAVES)]


def _met(ways: Sequence[list[_Arm]], of: Callable[[int, int], int]) -> int:
    """How many nodes are met whose arms these are, where the fewer or the more `of` each two arms are gone into."""
    arms: dict[int, tuple[list[list[_Arm]], list[list[_Arm]]]] = {}
    for (choice, second), *rest in filter(None, ways):
        arms.setdefault(choice, ([], []))[second].append(rest)
    return sum(not way for way in ways) + sum(of(_met(one, of), _met(other, of)) for one, other in arms.values())


def waits_beside(function: Function, site: Site) -> list[Site]:
    """The other waits of a statement that surely run where this one does: not in another arm of an expression."""
    statement = function.statement(site.node)
    others = function.sites_in(statement) if statement is not None else []
    ways = _ways(function, site.node)
    return [other for other in others if other is not site and _ways(function, other.node) <= ways]


def _ways(function: Function, node: ast.AST) -> set[tuple[int, int]]:
    """The parts of expressions around a node that may be left out, by `id` and which part it is."""
    found, child = set(), node
    for outer in function.around(node):
        if isinstance(outer, ast.stmt):
            break
        parts: list[ast.expr] = []
        match outer:
            case ast.IfExp(body=body, orelse=orelse):
                parts = [body, orelse]
            case ast.BoolOp(values=[_, *values]):
                parts = values
        if child in parts or isinstance(outer, REPEATED):
            found.add((id(outer), parts.index(child) if isinstance(child, ast.expr) and child in parts else 0))
        child = outer
    return found
