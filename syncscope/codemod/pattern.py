"""Shapes of code, written as code with holes: the twin of the draft's templates.

    seen(function, node, "{m}.unsqueeze(-1)", "{m}[..., None]")     the parts by name, {"m": ...}; None where it is no such code
    around(function, node, "len({it})", "{it}.shape[0]")            the expression around a node that is of such a shape

A hole takes any expression; `{x:name}` takes a name only. One that stands twice must be written alike both times. What is
called is compared by meaning: `{x}.sum()` sees `torch.sum(x)` too, and `torch.cat({x})` whatever the file calls torch. A number
sees a name that surely stands for it. `*_` and `**_` in a call are whatever else it is given.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from syncscope.codemod.function import Function, number

HOLE = re.compile(r"\{(\w+)(?::(name))?\}")
MARKED = re.compile(r"_(hole|name)_(\w+)_")
MODULES = {"F": "torch.nn.functional"}  # as patterns call them
NOT_COMPARED = ("ctx", "kind", "type_comment")
REACH = 4  # expressions that `around` goes outwards
Parts = dict[str, ast.expr]


class Around(NamedTuple):
    """An expression around another one, and its parts."""

    node: ast.expr
    parts: Parts


def seen(function: Function, node: ast.AST | None, *patterns: str) -> Parts | None:
    """The parts of an expression or a statement that has one of these shapes: those of the first that fits."""
    for pattern in patterns if node is not None else ():
        parts: Parts = {}
        if _fits(function, compiled(pattern), node, parts):
            return parts
    return None


def around(function: Function, node: ast.expr, *patterns: str) -> Around | None:
    """The nearest expression around a node that has one of these shapes, in which the node is `{it}`."""
    outer = function.parent(node)
    for _ in range(REACH):
        if not isinstance(outer, ast.expr):
            return None
        for pattern in patterns:
            parts = seen(function, outer, pattern)
            if parts is not None and parts["it"] is node:
                return Around(outer, parts)
        outer = function.parent(outer)
    return None


@lru_cache(maxsize=512)
def compiled(pattern: str) -> ast.AST:
    """A pattern as a tree, whose holes are names; a single expression as such."""
    code = HOLE.sub(lambda m: f"_{m[2] or 'hole'}_{m[1]}_", pattern)
    body = ast.parse(code).body[0]
    return body.value if isinstance(body, ast.Expr) else body


def _fits(function: Function, pattern: object, node: object, parts: Parts) -> bool:
    """Whether a node has the shape of a pattern's node; `parts` gets what fills the holes."""
    if isinstance(pattern, ast.Name) and (hole := MARKED.fullmatch(pattern.id)) is not None:
        return _filled(function, hole[2], node, parts) and (hole[1] == "hole" or isinstance(node, ast.Name))
    if isinstance(pattern, list):
        return (
            isinstance(node, list)
            and len(node) == len(pattern)
            and all(_fits(function, p, n, parts) for p, n in zip(pattern, node, strict=True))
        )
    if not isinstance(pattern, ast.AST):
        return type(pattern) is type(node) and pattern == node
    if isinstance(pattern, ast.expr) and (value := number(pattern)) is not None:
        return isinstance(node, ast.expr) and function.constant(node) == value
    if type(pattern) is not type(node):
        return False
    if isinstance(pattern, ast.Call) and isinstance(node, ast.Call):
        return _called(function, pattern, node, parts)
    fields = (f for f in pattern._fields if f not in NOT_COMPARED)
    return all(_fits(function, getattr(pattern, f), getattr(node, f), parts) for f in fields)


def _filled(function: Function, name: str, node: object, parts: Parts) -> bool:
    if not isinstance(node, ast.expr):
        return False
    if name in parts:
        return alike(parts[name], node)
    parts[name] = node
    return True


def alike(a: ast.expr, b: ast.expr) -> bool:
    """Whether two expressions are written alike, one of which may be bound where the other is read."""
    return ast.unparse(a) == ast.unparse(b)


def _called(function: Function, pattern: ast.Call, node: ast.Call, parts: Parts) -> bool:
    """As `_fits`, of calls: a function by its full name, a method as an operation on its tensor."""
    given = {k.arg: k.value for k in pattern.keywords if k.arg is not None}
    more = len(given) < len(pattern.keywords)
    keywords: Mapping[Any, ast.expr]
    if (name := _full_name(pattern.func)) is not None:
        keywords = {k.arg: k.value for k in node.keywords}
        if function.dotted(node.func) != name:
            return False
        args = node.args
    else:
        op = function.op(node)
        if not isinstance(pattern.func, ast.Attribute) or op is None or op.name != pattern.func.attr:
            return False
        if not _fits(function, pattern.func.value, op.base, parts):
            return False
        keywords, args = op.keywords, op.args
    wanted = pattern.args
    if wanted and isinstance(wanted[-1], ast.Starred):
        wanted, args = wanted[:-1], args[: len(wanted) - 1]
    if not (given.keys() <= keywords.keys() if more else given.keys() == keywords.keys()):
        return False
    return _fits(function, wanted, args, parts) and all(_fits(function, given[k], keywords[k], parts) for k in given)


def _full_name(node: ast.expr) -> str | None:
    """The full name of a function that a pattern calls; None for a method of a hole."""
    if isinstance(node, ast.Attribute):
        base = _full_name(node.value)
        return f"{base}.{node.attr}" if base is not None else None
    if not isinstance(node, ast.Name) or MARKED.fullmatch(node.id):
        return None
    return MODULES.get(node.id, node.id)
