"""Derivatives of expressions, as expressions."""

from __future__ import annotations

import functools
from collections.abc import Callable

from syncscope.errors import UserError
from syncscope.kernels.comprehensions.expressions import Apply, Node, Number, Read, rewrite, walk
from syncscope.kernels.comprehensions.functions import FUNCTIONS, OPERATORS
from syncscope.kernels.comprehensions.notation import FLOATS, parse

ZERO, ONE = Number(0), Number(1)
Fail = Callable[[int, str, str], UserError]  # from a place in the text, the message and a hint


def times(a: Node, b: Node) -> Node:
    """Their product, as one would write it."""
    match a, b:
        case _, Number(1):
            return a
        case Number(1), _:
            return b
        case _, Number(-1):
            return Apply("neg", (a,))
        case (Number(-1), x) | (Apply("neg", (Number(1),)), x):
            return Apply("neg", (x,))
        case Apply("?", (condition, yes, no)), _ if no == ZERO:
            return Apply("?", (condition, times(yes, b), ZERO))
        case _, Apply("?", (condition, yes, no)) if no == ZERO:
            return Apply("?", (condition, times(a, yes), ZERO))
        case _, Apply("neg", (x,)):
            return Apply("neg", (times(a, x),))
        case Apply("neg", (x,)), _:
            return Apply("neg", (times(x, b),))
        case _, Apply("/", (x, y)):
            return Apply("/", (times(a, x), y))
        case Apply("/", (Number(1), y)), _:
            return Apply("/", (b, y))
    return Apply("*", (a, b))


def plus(a: Node, b: Node) -> Node:
    """Their sum, as one would write it."""
    return Apply("-", (a, b.args[0])) if isinstance(b, Apply) and b.function == "neg" else Apply("+", (a, b))


def slope(node: Node, read: Read, fail: Fail) -> Node | None:
    """The derivative of an expression in one of its reads, by the chain rule; None where it is zero."""
    if node == read:
        return ONE
    if not isinstance(node, Apply) or all(x != read for x in walk(node)):
        return None  # what an index depends on, and what stands for outside, have no slope
    if node.function == "?":
        yes, no = (slope(x, read, fail) for x in node.args[1:])
        return None if yes is None and no is None else Apply("?", (node.args[0], yes or ZERO, no or ZERO))
    if node.function.startswith("cast "):
        return slope(node.args[0], read, fail) if node.function.removeprefix("cast ") in FLOATS else None
    slopes = (OPERATORS.get(node.function) or FUNCTIONS[node.function]).slopes
    total: Node | None = None
    for text, arg in zip(slopes, node.args, strict=True):
        inner = None if text == "" else slope(arg, read, fail)
        if inner is None:
            continue
        if text is None:
            raise fail(node.at, f"the slope of {node.function} is not known", "use another function")
        given = dict(zip("xyzw", node.args, strict=False))
        outer = rewrite(_parsed(text), lambda x: given[x.tensor] if isinstance(x, Read) else x)  # noqa: B023
        one = times(outer, inner)
        total = one if total is None else times(Number(2), one) if total == one else plus(total, one)
    return total


@functools.cache
def _parsed(text: str) -> Node:
    """A slope in x, y, z and w."""
    signature = "def slope(float x, float y, float z, float w) -> (s)"
    return parse(f"{signature} {{ s = {text} }}").statements[0].value
