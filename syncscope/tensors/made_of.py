"""What a value is made of in its function, as far as a gradient goes: followed back through names, statement by statement."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from syncscope.project.of_file import kept
from syncscope.project.syntax import dotted, name_of, text_of, without_gradients

LEAVES = frozenset("detach item tolist numpy size dim numel".split())  # methods that pass no gradient on
SHAPES = frozenset("shape device dtype ndim data".split())
_FILLING = frozenset("append extend add insert update setdefault".split())
GIVEN = re.compile(
    r"(^|_)(masks?|ids?|idxs?|index|indices|lengths?|lens?|weights?|actions?|rewards?|returns?|dones?|valid|positions?|y|"
    r"targets?|labels?|gts?|truth)$|^(targets?|labels?|gts?|true|ground)_"
)  # what a loss is told, and has no gradient


class MadeOf(NamedTuple):
    """An expression that a value is made of; of a tuple that it gives, the element at a place alone."""

    expression: ast.expr
    at: int | None = None


def made_of(root: ast.AST, value: ast.expr, line: int) -> Iterator[MadeOf]:
    """The expressions that a value at a line of a function is made of, one after another, from the last one back."""
    yield MadeOf(value)
    yield from _before(root, value, line)


def given_back(root: ast.FunctionDef | ast.AsyncFunctionDef, at: int | None) -> Iterator[MadeOf]:
    """The same of what a function gives back, or of one element of it."""
    for statement in statements(root):
        if isinstance(statement, ast.Return) and statement.value is not None:
            value = statement.value
            if at is not None and isinstance(value, ast.Tuple) and at < len(value.elts):
                value = value.elts[at]
            yield from made_of(root, value, statement.lineno)


def _before(root: ast.AST, value: ast.expr, line: int) -> Iterator[MadeOf]:
    wanted: dict[str, set[object]] = {}  # of each whole its items, None where it is asked for itself
    for path, item in names(value):
        wanted.setdefault(path, set()).add(item)
    earlier = (s for s in statements(root) if s.lineno <= line)
    for statement in sorted(earlier, key=lambda s: s.lineno, reverse=True):
        for target, part in bindings_of(statement):
            if any(_is_of(item, wanted.get(path)) for path, item in names(target)):
                for path, item in names(part.expression):
                    wanted.setdefault(path, set()).add(item)
                yield part
                if isinstance(target, ast.Subscript):
                    yield MadeOf(target)  # what is written over gets no gradient: its place is looked for


def bindings_of(statement: ast.stmt) -> Iterator[tuple[ast.expr, MadeOf]]:
    """What a statement gives a value, one by one where a tuple is unpacked."""
    match statement:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                if (
                    isinstance(target, ast.Tuple)
                    and isinstance(value, ast.Tuple)
                    and len(target.elts) == len(value.elts)
                ):
                    yield from zip(target.elts, map(MadeOf, value.elts), strict=True)
                elif isinstance(target, ast.Tuple) and not any(isinstance(each, ast.Starred) for each in target.elts):
                    yield from ((each, MadeOf(value, at)) for at, each in enumerate(target.elts))
                else:
                    yield target, MadeOf(value)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
            yield target, MadeOf(value)
        case ast.For(target=target, iter=value):
            yield target, MadeOf(value)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr=attr), args=args)) if attr in _FILLING:
            yield from ((target, MadeOf(value)) for value in args)


@kept(16)
def statements(root: ast.AST) -> tuple[ast.stmt, ...]:
    """The statements of a function that gradients go through: none in `with torch.no_grad()`, none of a function in it."""
    found: list[ast.stmt] = []
    todo: list[ast.AST] = [root]
    for node in todo:
        for each in ast.iter_child_nodes(node):
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
                continue
            if isinstance(each, (ast.With, ast.AsyncWith)) and without_gradients(each):
                continue
            if isinstance(each, ast.stmt):
                found.append(each)
            todo.append(each)
    return tuple(found)


@kept(1024)  # what is before one backward pass is before the next
def differentiable(expression: ast.expr) -> tuple[ast.AST, ...]:
    """The nodes of an expression that pass a gradient on."""
    found: list[ast.AST] = []
    todo: list[ast.AST] = [expression]
    for node in todo:
        match node:
            case ast.Call(func=ast.Attribute(attr=attr)) if attr in LEAVES:
                continue
            case ast.Attribute(attr=attr) if attr in SHAPES:
                continue
            case ast.Compare() | ast.Lambda():
                continue
            case ast.Subscript(value=value, slice=index):
                found.append(node)
                item = text_of(index) is not None and dotted(value)
                todo += [] if item else [value]
                continue
        found.append(node)
        todo += ast.iter_child_nodes(node)
    return tuple(found)


Name = tuple[str, object]


@kept(1024)
def names(expression: ast.expr) -> frozenset[Name]:
    """The names in it, `losses` as a whole or one item of it: `losses["box"]`."""
    found: set[Name] = set()
    for each in differentiable(expression):
        match each:
            case ast.Subscript(value=value, slice=ast.Constant(value=str(key))) if path := dotted(value):
                found.add((path, key))
            case ast.Name() | ast.Attribute() if (path := dotted(each)) and not GIVEN.search(name_of(each)):
                found.add((path, None))
    return frozenset(found)


def _is_of(item: object, wanted: set[object] | None) -> bool:
    """Whether an item, or None for a whole, may be what is wanted of it: a whole is made of each of its items."""
    return bool(wanted) and (item is None or None in wanted or item in wanted)  # type: ignore[operator]  # asked first
