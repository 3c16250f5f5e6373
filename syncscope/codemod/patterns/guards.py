"""Choices that ask whether a mask selects anything: `x[m].max() if m.any() else 0`, and the same with `if`."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import NamedTuple

from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.lengths import length, number_of_elements

COUNTS = ("{m}.any()", "{m}.sum()", "{m}.count_nonzero()")
SOME = ("{n} > 0", "{n} != 0", "{n} >= 1")
ZERO = (
    "0", "torch.tensor(0, *_, **_)", "{x}.new_tensor(0, *_, **_)", "torch.zeros((), *_, **_)", "{x}.new_zeros((), *_, **_)",
)  # fmt: skip
NONE = ("{n} == 0", "{n} <= 0", "{n} < 1")


class Guard(NamedTuple):
    """A choice between a value of what is selected and another where nothing is."""

    node: ast.IfExp | ast.If
    head: str  # what stands before the value in a statement: `worst = `, `total += `
    other: ast.expr | None  # None: nothing is added


def guard_of(function: Function, value: ast.expr, mask: ast.expr, taken: Collection[ast.expr]) -> Guard | None:
    """The choice around a value, if it asks for what the value is computed of: the mask, or the selection `taken` by it."""
    outer = function.parent(value)
    if isinstance(outer, ast.IfExp):
        some = asks(function, outer.test, mask, taken)
        kept, other = (outer.body, outer.orelse) if some else (outer.orelse, outer.body)
        fits = some is not None and kept is value and function.pure(other) and function.pure(outer.test)
        return Guard(outer, "", other) if fits else None
    choice = function.parent(outer) if outer is not None else None
    if not isinstance(choice, ast.If) or function.is_elif(choice) or not function.pure(choice.test):
        return None
    some = asks(function, choice.test, mask, taken)
    this, that = (choice.body, choice.orelse) if some else (choice.orelse, choice.body)
    if some is None or this != [outer] or len(that) > 1:
        return None
    match outer:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add() | ast.Sub() as op) if not that or is_pass(that[0]):
            return Guard(choice, f"{name} {'+=' if isinstance(op, ast.Add) else '-='} ", None)
        case ast.Assign(targets=[ast.Name() as target]):
            default = bound_otherwise(function, that, target)
            return Guard(choice, f"{target.id} = ", default) if default is not None and function.pure(default) else None
    return None


def is_pass(statement: ast.stmt) -> bool:
    """Whether a statement does nothing."""
    return isinstance(statement, ast.Pass)


def bound_otherwise(function: Function, that: list[ast.stmt], target: ast.Name) -> ast.expr | None:
    """What a name holds where nothing is selected: what the other way gives it, or what it was given before."""
    match that:
        case []:
            before = function.reaching_definition(target)
            return before.value if before is not None and function.constant(before.value) is not None else None
        case [ast.Assign(targets=[ast.Name(id=name)], value=value)] if name == target.id:
            return value
    return None


def asks(function: Function, test: ast.expr, mask: ast.expr, taken: Collection[ast.expr]) -> bool | None:
    """Whether a test holds where anything is selected (True) or where nothing is (False); None where it asks something else."""
    if (denied := seen(function, test, "not {n}")) is not None:
        found = asks(function, denied["n"], mask, taken)
        return None if found is None else not found
    none, some = seen(function, test, *NONE), seen(function, test, *SOME)
    asked = (none or some or {"n": test})["n"]
    return none is None if counts(function, asked, mask, taken) else None


def counts(function: Function, node: ast.expr, mask: ast.expr, taken: Collection[ast.expr]) -> bool:
    """Whether this is the number of what is selected, or whether there is any: of the mask, or of a selection by it."""
    if (read := seen(function, node, "{n}.item()", "int({n})", "bool({n})")) is not None:
        return counts(function, read["n"], mask, taken)
    if (asked := seen(function, node, *COUNTS)) is not None and function.same(asked["m"], mask):
        return True
    chosen = (n for n in ast.walk(node) if isinstance(n, ast.expr) and any(function.same(n, t) for t in taken))
    return any(length(function, n) is node or number_of_elements(function, n) is node for n in chosen)


def nothing(function: Function, node: ast.expr | None) -> bool:
    """Whether a value is zero: written out, a tensor of it, or `x.sum() * 0`, which is zero if x is finite."""
    if node is None or seen(function, node, *ZERO) is not None:
        return True
    product = seen(function, node, "0 * {x}", "{x} * 0")
    return product is not None and function.fact(product["x"]).ndim == 0
