"""Derivatives of expressions, as expressions."""

from __future__ import annotations

from collections.abc import Callable

from syncscope.errors import UserError
from syncscope.kernels.comprehension.functions import FUNCTIONS
from syncscope.kernels.comprehension.notation import FLOATS, parse
from syncscope.kernels.comprehension.tree import Apply, Node, Number, Read, rewrite, walk

ZERO, ONE = Number(0), Number(1)
Fail = Callable[[int, str, str], UserError]  # from a place in the text, the message and a hint


def times(a: Node, b: Node) -> Node:
    """Their product, as one would write it."""
    if b in (ONE, Number(1.0)):
        return a
    if a in (ONE, Number(1.0)):
        return b
    match a, b:
        case Apply("?", (condition, yes, no)), _ if no == ZERO:
            return Apply("?", (condition, times(yes, b), ZERO))
        case _, Apply("?", (condition, yes, no)) if no == ZERO:
            return Apply("?", (condition, times(a, yes), ZERO))
        case _, Apply("neg", (x,)):
            return Apply("neg", (times(a, x),))
        case _, Apply("/", (x, y)):
            return Apply("/", (times(a, x), y))
    return Apply("*", (a, b))


def slope(node: Node, read: Read, fail: Fail) -> Node | None:
    """The derivative of an expression in one of its reads; None where it is zero."""
    if node == read:
        return ONE
    if not any(x == read for x in walk(node)):
        return None
    match node:
        case Read():
            return None  # the index depends on it, or what stands for outside
        case Apply("+" | "-" as op, (left, right)):
            a, b = slope(left, read, fail), slope(right, read, fail)
            if b is not None and op == "-":
                b = Apply("neg", (b,))
            return b if a is None else a if b is None else Apply("+", (a, b))
        case Apply("*", (left, right)):
            a, b = slope(left, read, fail), slope(right, read, fail)
            if left == right and a is not None:
                return Apply("*", (Number(2), times(left, a)))
            first = None if a is None else times(right, a)
            second = None if b is None else times(left, b)
            return second if first is None else first if second is None else Apply("+", (first, second))
        case Apply("/", (left, right)):
            a, b = slope(left, read, fail), slope(right, read, fail)
            first = None if a is None else Apply("/", (a, right))
            second = None if b is None else Apply("neg", (times(Apply("/", (node, right)), b),))
            return second if first is None else first if second is None else Apply("+", (first, second))
        case Apply("neg", (x,)):
            a = slope(x, read, fail)
            return None if a is None else Apply("neg", (a,))
        case Apply("?", (condition, yes, no)):
            a, b = slope(yes, read, fail), slope(no, read, fail)
            return None if a is None and b is None else Apply("?", (condition, a or ZERO, b or ZERO))
        case Apply("==" | "!=" | "<" | "<=" | ">" | ">=" | "&&" | "||" | "not" | "//", _):
            return None
        case Apply("%", (left, right)):
            return slope(left, read, fail)
        case Apply(function, args) if function.startswith("cast "):
            return slope(args[0], read, fail) if function.removeprefix("cast ") in FLOATS else None
        case Apply(function, args):
            total: Node | None = None
            for i, arg in enumerate(args):
                inner = slope(arg, read, fail)
                text = FUNCTIONS[function].slopes[i]
                if inner is None or text == "":
                    continue
                if text is None:
                    raise fail(node.at, f"the slope of {function} is not known", "use another function")
                one = times(_written(text, args), inner)
                total = one if total is None else Apply("+", (total, one))
            return total
    raise TypeError(node)


def _written(text: str, args: tuple[Node, ...]) -> Node:
    """A slope with arguments for x, y, z, w."""
    given = dict(zip("xyzw", args, strict=False))
    parsed = parse(f"def slope(float x, float y, float z, float w) -> (s) {{ s = {text} }}").statements[0].value
    return rewrite(parsed, lambda node: given[node.tensor] if isinstance(node, Read) else node)
