"""Masks of which it is known how many elements are true: those set at the indices of a `topk`, and a `one_hot`."""

from __future__ import annotations

import ast

from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.positions import part_of
from syncscope.codemod.writes import writes
from syncscope.model.fact import Site

DISTINCT = "{0} must name different elements: where it names one twice, a row is missing and holds -1"


def a_size(function: Function, node: ast.expr) -> bool:
    """Whether an expression can be a number of rows: none that is negative, or on the device."""
    value = function.constant(node)
    if value is not None:
        return isinstance(value, int) and value > 0
    return isinstance(node, (ast.Name, ast.Attribute)) and not function.fact(node).is_tensor


def counted_beforehand(site: Site, function: Function, mask: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """How many elements of a mask are true, where that is known from how it was made, and of what that is known.

    A mask of zeros that is set at the indices of a `topk`: k. A `one_hot`: one for each label.
    """
    made = function.op(function.value(mask))
    if made is not None and made.name == "one_hot":
        return made.base, made.base
    if made is None or made.name not in ("zeros", "zeros_like", "new_zeros") or not isinstance(mask, ast.Name):
        return None
    defined = function.reaching_definition(mask)
    if defined is None or site.fact_of(mask).ndim not in (1, None):
        return None
    written = [n for n in function.reads(mask.id) if writes(function, n)]
    if (
        len(written) != 1
        or function.reaching_definition(written[0]) is not defined
        or function.loop(written[0]) is not None
    ):
        return None
    index = set_at(function, written[0])
    chosen = part_of(function, index) if index is not None else None
    best = function.op(chosen[0]) if chosen is not None else None
    if index is None or chosen is None or best is None or best.name != "topk" or chosen[1] not in (1, "indices"):
        return None
    size = best.argument(0, "k")
    return (size, index) if size is not None and a_size(function, size) else None


def set_at(function: Function, name: ast.Name) -> ast.expr | None:
    """The index i of `m[i] = True` and `m.scatter_(0, i, True)`."""
    at, statement = function.parent(name), function.statement(name)
    for true in ("True", "1"):
        found = seen(function, statement, f"{{m}}[{{i}}] = {true}")
        if found is None:
            scatter = function.parent(at) if at is not None else None
            found = seen(function, scatter, f"{{m}}.scatter_(0, {{i}}, {true})", f"{{m}}.scatter_(-1, {{i}}, {true})")
        if found is not None and found["m"] is name:
            return found["i"]
    return None


def said_of(function: Function, size: ast.expr, known: ast.expr) -> str:
    """What must hold for the number of true elements to be the one that is named."""
    if size is known:
        return "every label must be a class: where one is not, a row is missing and holds -1"
    return DISTINCT.format(function.file.text(known))
