"""Rows of a data set that a loop sends to the device, batch by batch: `data[i : i + 32].to(device)`.

They lie on the host: nobody sends anew, in each pass, a part of what is there already.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from syncscope.project import conventions, devices
from syncscope.project.syntax import dotted, each_of, name_of, walk
from syncscope.tensors.call import Call
from syncscope.tensors.frame import Frame
from syncscope.tensors.sent_parts import to_a_device

_LOOPS = (ast.For, ast.While)
_NAMES = (ast.Name, ast.Attribute)


def sends_rows(call: Call) -> bool:
    """Whether a call `rows.to(device)` sends rows that a pass of its loop has picked of what lies outside of it."""
    return isinstance(call.at, ast.Subscript) and are_sent(call.frame, call.at)


def are_sent(frame: Frame, rows: ast.Subscript) -> bool:
    """Whether these are such rows: they are picked on the host."""
    function = frame.function
    return id(rows) in _sent(frame.module.tree if function is None else function.node)


@lru_cache(maxsize=8)
def _sent(scope: ast.AST) -> frozenset[int]:
    if isinstance(scope, ast.FunctionDef) and scope.name in conventions.GIVES_BATCHES:
        return frozenset(id(each) for each in _rows(walk(scope), set()))
    loops = (each for each in walk(scope) if isinstance(each, _LOOPS))
    return frozenset(id(each) for loop in loops for each in _rows_of(loop))


def _rows_of(loop: ast.For | ast.While) -> Iterator[ast.Subscript]:
    inside = [node for statement in loop.body for node in walk(statement)]
    made = {each.id for each in inside if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    made -= {name_of(part) for each in inside if isinstance(each, ast.comprehension) for part in walk(each.target)}
    counted = (
        {each.id for each in walk(loop.target) if isinstance(each, ast.Name)} if isinstance(loop, ast.For) else set()
    )
    return (each for each in _rows(inside, counted) if dotted(each.value).partition(".")[0] not in made)


def _rows(inside: list[ast.AST], counted: set[str]) -> Iterator[ast.Subscript]:
    for each in inside:
        match each:
            case ast.Call(func=ast.Attribute(value=ast.Subscript() as rows)):
                if _is_of_rows(rows, counted) and to_a_device(each, None, set()):
                    yield rows


def _is_of_rows(node: ast.Subscript, counted: set[str]) -> bool:
    """Whether several rows are picked, `x[i : i + n]`, `x[order[i : i + n]]`, `x[perm]`, of what is no list of models."""
    if not isinstance(node.value, _NAMES) or devices.is_model(name := name_of(node.value)) or devices.is_network(name):
        return False
    first = each_of(node.slice)[0]
    if isinstance(first, ast.Subscript) and isinstance(first.slice, ast.Slice):
        first = first.slice
    if isinstance(first, ast.Slice):
        bounds = [bound for bound in (first.lower, first.upper) if bound is not None]
        return any(isinstance(each, ast.Name) for bound in bounds for each in walk(bound))
    named = name_of(first)
    return isinstance(first, _NAMES) and conventions.is_positions(named) and named not in counted
