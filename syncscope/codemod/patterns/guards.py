"""Choices that ask whether a mask selects anything: `x[m].max() if m.any() else 0`, and the same with `if`."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import NamedTuple

from syncscope.codemod.function import Function
from syncscope.codemod.patterns.lengths import length, number_of_elements

COUNTS = ("any", "sum", "count_nonzero")


class Guard(NamedTuple):
    """A choice between a value of what is selected and another where nothing is."""

    node: ast.IfExp | ast.If
    head: str  # what stands before the value in a statement: `worst = `, `total += `
    other: ast.expr | None  # None: nothing is added


def guard_of(function: Function, value: ast.expr, mask: ast.expr, taken: Collection[ast.expr]) -> Guard | None:
    """The choice around a value, if it asks for what the value is computed of: the mask, or the selection `taken` by it."""
    outer = function.parent(value)
    if isinstance(outer, ast.IfExp):
        found = asks(function, outer.test, mask, taken)
        if found is None or value not in (outer.body, outer.orelse) or (outer.body is value) is not found:
            return None
        other = outer.orelse if found else outer.body
        return Guard(outer, "", other) if function.pure(other) and function.pure(outer.test) else None
    choice = function.parent(outer) if isinstance(outer, (ast.Assign, ast.AugAssign)) else None
    if not isinstance(outer, (ast.Assign, ast.AugAssign)) or not isinstance(choice, ast.If):
        return None
    found = asks(function, choice.test, mask, taken)
    if found is None or not function.pure(choice.test) or function.is_elif(choice):
        return None
    this, that = (choice.body, choice.orelse) if found else (choice.orelse, choice.body)
    if this != [outer] or len(that) > 1:
        return None
    if isinstance(outer, ast.AugAssign):
        plus = {ast.Add: "+=", ast.Sub: "-="}.get(type(outer.op))
        name = outer.target.id if isinstance(outer.target, ast.Name) else None
        nothing_else = not that or (isinstance(that[0], ast.Pass) and name is not None)
        return Guard(choice, f"{name} {plus} ", None) if name and plus and nothing_else else None
    target = outer.targets[0]
    if len(outer.targets) != 1 or not isinstance(target, ast.Name):
        return None
    default = bound_otherwise(function, that, target)
    return Guard(choice, f"{target.id} = ", default) if default is not None and function.pure(default) else None


def bound_otherwise(function: Function, that: list[ast.stmt], target: ast.Name) -> ast.expr | None:
    """What a name holds where nothing is selected: what the other way gives it, or what it was given before."""
    if not that:
        before = function.definition(target)
        return before.value if before is not None and function.constant(before.value) is not None else None
    assign = that[0]
    same = isinstance(assign, ast.Assign) and len(assign.targets) == 1 and function.same_name(assign.targets[0], target)
    return assign.value if isinstance(assign, ast.Assign) and same else None


def asks(function: Function, test: ast.expr, mask: ast.expr, taken: Collection[ast.expr]) -> bool | None:
    """Whether a test holds where anything is selected (True) or where nothing is (False); None where it asks something else."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        found = asks(function, test.operand, mask, taken)
        return None if found is None else not found
    wanted = True
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        number, how = function.constant(test.comparators[0]), type(test.ops[0])
        if (how, number) in ((ast.Eq, 0), (ast.LtE, 0), (ast.Lt, 1)):
            wanted = False
        elif (how, number) not in ((ast.Gt, 0), (ast.NotEq, 0), (ast.GtE, 1)):
            return None
        test = test.left
    return wanted if counts(function, test, mask, taken) else None


def counts(function: Function, node: ast.expr, mask: ast.expr, taken: Collection[ast.expr]) -> bool:
    """Whether this is the number of what is selected, or whether there is any: of the mask, or of a selection by it."""
    op = function.op(node)
    if op is not None and op.name == "item" and not op.args:
        return counts(function, op.base, mask, taken)
    if isinstance(node, ast.Call) and function.dotted(node.func) in ("int", "bool") and len(node.args) == 1:
        return counts(function, node.args[0], mask, taken)
    if op is not None and op.name in COUNTS and not op.args and not op.keywords and function.same(op.base, mask):
        return True
    chosen = (n for n in ast.walk(node) if isinstance(n, ast.expr) and any(function.same(n, t) for t in taken))
    return any(length(function, n) is node or number_of_elements(function, n) is node for n in chosen)


def nothing(function: Function, node: ast.expr | None) -> bool:
    """Whether a value is zero: written out, a tensor of it, or `x.sum() * 0`, which is zero if x is finite."""
    if node is None:
        return True
    if function.constant(node) is not None:
        return function.constant(node) == 0
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        one, other = function.constant(node.left), function.constant(node.right)
        sides = (node.right if one == 0 else node.left if other == 0 else None,)
        return any(side is not None and function.fact(side).ndim == 0 for side in sides)
    op = function.op(node)
    if op is None:
        return False
    if op.name in ("tensor", "new_tensor"):
        value = op.base if op.name == "tensor" else op.args[0] if op.args else node
        return function.constant(value) == 0
    shape = op.args[0] if op.name == "new_zeros" and op.args else op.base if op.name == "zeros" else None
    return isinstance(shape, ast.Tuple) and not shape.elts
