"""Lists of statements side by side: which stand in both, which of them say the same, and what is in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, TypeVar

from syncscope.turns.asking import Body

Node = TypeVar("Node")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")  # of a statement, what other statements stand in
ATOMS = frozenset({int, str, type(None)})


@dataclass(frozen=True)
class Stretch:
    """Statements `first` to `last` of a list, and those in their place; `same`: each has the head of the one in its place."""

    same: bool
    first: int
    last: int
    other: Body


def aligned(body: Body, other: Body) -> list[Stretch]:
    """How one list becomes the other."""
    heads = [_head(s) for s in body], [_head(s) for s in other]
    matched = SequenceMatcher(None, *heads, autojunk=False).get_opcodes()
    return [Stretch(kind == "equal", a, b, other[c:d]) for kind, a, b, c, d in matched]


def _head(statement: ast.AST) -> str:
    """What tells a statement from others, without what stands in its blocks."""
    blocks = [name for name in BLOCKS if getattr(statement, name, None)]
    if not blocks:
        return ast.dump(statement)
    fields = {name: value for name, value in ast.iter_fields(statement) if name not in blocks}
    said = [f"{name}={_dumped(value)}" for name, value in fields.items()]
    parts = [_head(part) for name in blocks for part in getattr(statement, name) if not isinstance(part, ast.stmt)]
    return f"{type(statement).__name__}({said}, {blocks}, {parts})"


def _dumped(value: object) -> str:
    if isinstance(value, list):
        return repr([_dumped(part) for part in value])
    return ast.dump(value) if isinstance(value, ast.AST) else repr(value)


def same(one: Body, other: Body) -> bool:
    """Whether two lists say the same."""
    return len(one) == len(other) and all(equal(a, b) for a, b in zip(one, other, strict=True))


def equal(one: Any, other: Any) -> bool:
    """Whether two nodes say the same, wherever they stand: as their dumps tell, in a third of the time."""
    if type(one) is not type(other):
        return False
    if isinstance(one, ast.AST):
        return all(equal(getattr(one, name, None), getattr(other, name, None)) for name in one._fields)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return repr(one) == repr(other)  # 0.0 is not -0.0


def copied(node: Node) -> Node:
    """What nobody else changes: `copy.deepcopy` takes ten times as long, which is most of what weaving takes."""
    if isinstance(node, ast.AST):
        if not node._fields:  # `ast.Load()` is one for all
            return node
        made = node.__class__.__new__(node.__class__)
        own = made.__dict__
        for name, value in node.__dict__.items():
            own[name] = value if type(value) in ATOMS else copied(value)
        return made
    if isinstance(node, list):
        return [copied(part) for part in node]  # type: ignore[return-value]
    if isinstance(node, dict):
        return {key: copied(value) for key, value in node.items()}  # type: ignore[return-value]
    return node


def changed(body: Body, steps: Sequence[Stretch]) -> Iterator[ast.stmt]:
    """The statements for which others stand in the other list."""
    for step in steps:
        yield from body[step.first : step.last] if not step.same else ()


def own_nodes(body: Body) -> Iterator[ast.AST]:
    """What stands in a body, without what stands in functions and classes there."""
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            todo += ast.iter_child_nodes(node)


class OwnStatements:
    """Of what changes a body: leaves what stands in functions and classes there, which is theirs."""

    def _left(self, node: ast.stmt) -> ast.stmt:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _left  # noqa: N815  names that ast asks for
