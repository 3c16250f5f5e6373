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
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from syncscope.codemod.function import Function
from syncscope.codemod.names_and_calls import number

HOLE = re.compile(r"\{(\w+)(?::(name))?\}")
MARKED = re.compile(r"_(hole|name)_(\w+)_")
MODULES = {"F": "torch.nn.functional"}  # as patterns call them
NOT_COMPARED = ("ctx", "kind", "type_comment")
REACH = 4  # expressions that `around` goes outwards
Parts = dict[str, ast.expr]
Fits = Callable[[Function, Any, Parts], bool]  # of a node


class Around(NamedTuple):
    """An expression around another one, and its parts."""

    node: ast.expr
    parts: Parts


def seen(function: Function, node: ast.AST | None, *patterns: str) -> Parts | None:
    """The parts of an expression or a statement that has one of these shapes: those of the first that fits."""
    for pattern in patterns if node is not None else ():
        parts: Parts = {}
        if compiled(pattern)(function, node, parts):
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
def compiled(pattern: str) -> Fits:
    """What tells whether a node has the shape of a pattern, whose holes are names in what is parsed."""
    code = HOLE.sub(lambda m: f"_{m[2] or 'hole'}_{m[1]}_", pattern)
    body = ast.parse(code).body[0]
    return _shape(body.value if isinstance(body, ast.Expr) else body)


def _shape(pattern: object) -> Fits:
    """What tells whether a node has the shape of a pattern's node, and gives `parts` what fills the holes."""
    kind = type(pattern)
    if isinstance(pattern, list):
        return _row([_shape(p) for p in pattern])
    if not isinstance(pattern, ast.AST):
        return lambda _, node, parts: type(node) is kind and node == pattern
    if isinstance(pattern, ast.Name) and (hole := MARKED.fullmatch(pattern.id)) is not None:
        return _hole(hole[2], ast.Name if hole[1] == "name" else ast.expr)
    if isinstance(pattern, ast.expr) and (value := number(pattern)) is not None:
        return lambda function, node, parts: isinstance(node, ast.expr) and function.constant(node) == value
    if isinstance(pattern, ast.Call):
        return _call(pattern)
    return _node(type(pattern), [(f, _shape(getattr(pattern, f))) for f in pattern._fields if f not in NOT_COMPARED])


def _node(kind: type[ast.AST], fields: list[tuple[str, Fits]]) -> Fits:
    """Of a node of a kind, field by field."""

    def fits(function: Function, node: Any, parts: Parts) -> bool:
        if type(node) is not kind:
            return False
        for name, fit in fields:  # noqa: SIM110  (a loop is twice as fast here, and this runs for every statement)
            if not fit(function, getattr(node, name), parts):
                return False
        return True

    return fits


def _row(wanted: list[Fits]) -> Fits:
    """Of lists, element by element."""

    def fits(function: Function, nodes: Any, parts: Parts) -> bool:
        if not isinstance(nodes, list) or len(nodes) != len(wanted):
            return False
        return all(fit(function, node, parts) for fit, node in zip(wanted, nodes, strict=True))

    return fits


def _hole(name: str, kind: type[ast.expr]) -> Fits:
    """Of what may be anything of a kind; a hole that was filled before takes what is written alike."""

    def fits(_: Function, node: Any, parts: Parts) -> bool:
        if not isinstance(node, kind):
            return False
        return parts.setdefault(name, node) is node or alike(parts[name], node)

    return fits


def alike(a: ast.expr, b: ast.expr) -> bool:
    """Whether two expressions are written alike, one of which may be bound where the other is read."""
    return ast.unparse(a) == ast.unparse(b)


def _call(pattern: ast.Call) -> Fits:
    """Of calls: a function by its full name, a method as an operation on its tensor."""
    func, name = pattern.func, _full_name(pattern.func)
    assert name is not None or isinstance(func, ast.Attribute), f"{ast.unparse(pattern)} calls a hole"
    word = func.attr if isinstance(func, ast.Attribute) else name
    base = _shape(func.value) if name is None and isinstance(func, ast.Attribute) else None
    rest = bool(pattern.args) and isinstance(pattern.args[-1], ast.Starred)
    wanted = [_shape(a) for a in pattern.args[: len(pattern.args) - rest]]
    row, given = _row(wanted), {k.arg: _shape(k.value) for k in pattern.keywords if k.arg is not None}
    more = len(given) < len(pattern.keywords)

    def fits(function: Function, node: Any, parts: Parts) -> bool:
        if not isinstance(node, ast.Call) or (isinstance(node.func, ast.Attribute) and node.func.attr != word):
            return False  # most calls end here: a name may be one of anything, what comes after a dot is what it says
        args: list[ast.expr] = node.args
        keywords: Mapping[Any, ast.expr] = {k.arg: k.value for k in node.keywords}
        if base is None:
            if function.dotted(node.func) != name:
                return False
        else:
            op = function.op(node)
            if op is None or op.name != word or not base(function, op.base, parts):
                return False
            args, keywords = op.args, op.keywords
        if not (given.keys() <= keywords.keys() if more else given.keys() == keywords.keys()):
            return False
        if not row(function, args[: len(wanted)] if rest else args, parts):
            return False
        return all(each(function, keywords[k], parts) for k, each in given.items())

    return fits


def _full_name(node: ast.expr) -> str | None:
    """The full name of a function that a pattern calls; None for a method of a hole."""
    if isinstance(node, ast.Attribute):
        base = _full_name(node.value)
        return f"{base}.{node.attr}" if base is not None else None
    if not isinstance(node, ast.Name) or MARKED.fullmatch(node.id):
        return None
    return MODULES.get(node.id, node.id)
