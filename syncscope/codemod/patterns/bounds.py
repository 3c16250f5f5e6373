"""What has no finite value or gradient for some numbers: quotients, roots, logarithms, powers, exponentials.

Behind a mask it is mostly computed of the numbers that it has one for. `where` leaves out the values of the others, and
multiplies their gradients with zero: what was not finite is NaN then.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.templates import Part

BOUNDED = {
    "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "exp", "exp2", "expm1", "tan", "acos", "asin", "acosh",
    "atanh", "logit", "erfinv", "lgamma", "digamma",
}  # fmt: skip
DIVIDING = {"div", "divide", "true_divide", "floor_divide", "fmod", "remainder"}


def bounded(function: Function, value: ast.expr, taken: Collection[ast.expr]) -> set[ast.expr]:
    """Those of what is taken of which a value is made by what has no finite gradient for some numbers."""
    of = (part for n in ast.walk(value) if isinstance(n, ast.expr) for part in _parts(function, n))
    return {n for part in of for n in ast.walk(part) if isinstance(n, ast.expr) and n in taken}


def one_elsewhere(draft: Draft, mask: Part, x: ast.expr) -> Part:
    """What a mask selects from, with 1 in the place of what it leaves out: that gets no gradient, whatever is made of it."""
    return draft.part("torch.where({m}, {x}, 1)", m=mask, x=x)


def _parts(function: Function, node: ast.expr) -> Iterable[ast.expr]:
    """What an expression must not have every number of."""
    match node:
        case ast.BinOp(op=ast.Div() | ast.FloorDiv() | ast.Mod(), right=right):
            return [right]
        case ast.BinOp(op=ast.Pow(), left=left, right=right):
            return _powers(function, left, right)
    op = function.op(node)
    if op is None:
        return []
    if op.name == "pow" and op.args:
        return _powers(function, op.base, op.args[0])
    if op.name in DIVIDING:
        return op.args
    return [op.base] if op.name in BOUNDED else []


def _powers(function: Function, base: ast.expr, exponent: ast.expr) -> list[ast.expr]:
    """A whole number from 1 on as exponent goes with every base."""
    whole = function.constant(exponent)
    whole = whole if isinstance(whole, (int, float)) else None
    return [] if whole is not None and whole >= 1 and whole == int(whole) else [base, exponent]
