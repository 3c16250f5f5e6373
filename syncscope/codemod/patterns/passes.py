"""Loops and comprehensions: what gives a name its value in each pass, and what every pass surely does."""

from __future__ import annotations

import ast

from syncscope.codemod.enclosure import CONDITIONAL, SCOPES
from syncscope.codemod.function import Function
from syncscope.project.syntax import each_of, walk

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Loop = ast.For | Comprehension
LEAVE = (ast.Continue, ast.Break, ast.Return, ast.Raise)
BRANCHES = (ast.If, ast.Try, ast.With, ast.Match, ast.For, ast.AsyncFor, ast.While)
AT_ONCE = {"list", "tuple", "set", "frozenset", "sum", "sorted", "min", "max"}  # go through all that they are given


def loop_of(function: Function, use: ast.Name) -> tuple[Loop, ast.expr, ast.expr] | None:
    """The loop that gives a name its value at a use, with the target and what it goes through."""
    child: ast.AST = use
    for outer in function.around(use):
        match outer:
            case ast.For(target=target, iter=every) if child in outer.body and binds(target, use.id):
                return outer, target, every
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                one = outer.generators[0]
                if len(outer.generators) == 1 and binds(one.target, use.id):
                    return (outer, one.target, one.iter) if use not in walk(one.iter) else None
            case _ if isinstance(outer, SCOPES):
                return None
        child = outer
    return None


def binds(target: ast.expr, name: str) -> bool:
    """Whether a target binds a name."""
    return any(isinstance(n, ast.Name) and n.id == name for n in walk(target))


def element_of(function: Function, target: ast.expr, every: ast.expr, name: str) -> ast.expr | None:
    """What a name is an element of: the x of `for name in x`, `for i, name in enumerate(x)`, `for a, name in zip(y, x)`."""
    if isinstance(target, ast.Name):
        return every
    parts = each_of(target)
    places = [n for n, part in enumerate(parts) if isinstance(part, ast.Name) and part.id == name]
    match every:
        case ast.Call(func=called, args=given, keywords=[]) if len(places) == 1:
            if function.dotted(called) == "enumerate" and places == [1] and len(given) == 1:
                return given[0]
            if function.dotted(called) == "zip" and len(given) == len(parts):
                return given[places[0]] if not any(isinstance(each, ast.Starred) for each in given) else None
    return None


def in_every_pass(function: Function, node: ast.AST, loop: Loop) -> bool:
    """Whether something is surely done in every pass of a loop, and as soon as the loop is reached."""
    child = node
    for outer in function.around(node):
        if outer is loop:
            break
        if isinstance(outer, (*BRANCHES, *CONDITIONAL)):
            return False
        child = outer
    if isinstance(loop, ast.For):
        before = (n for n in walk(loop) if isinstance(n, LEAVE))
        return not any((n.lineno, n.col_offset) < (node.lineno, node.col_offset) for n in before)  # type: ignore[attr-defined]
    if isinstance(loop, ast.GeneratorExp):
        taker = function.parent(loop)
        if not isinstance(taker, ast.Call) or function.dotted(taker.func) not in AT_ONCE:
            return False
    asked = loop.generators[0].ifs
    return not asked or (len(asked) == 1 and isinstance(child, ast.comprehension))


def bound_again(function: Function, loop: Loop, name: str) -> bool:
    """Whether a loop gives a name that its target binds another value, too, or leaves it behind for somebody to read."""
    if not isinstance(loop, ast.For):
        return False
    inside, own = {id(n) for n in walk(loop)}, {id(n) for n in walk(loop.target)}
    if any(id(n) in inside - own for n in function.binds(name)):
        return True
    after = [n for n in function.reads(name) if id(n) not in inside and n.lineno > loop.lineno]
    return any(loop_of(function, n) is None and function.reaching_definition(n) is None for n in after)
