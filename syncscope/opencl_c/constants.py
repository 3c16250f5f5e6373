"""The value of an expression of integers, as the compiler computes it."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

CONSTANT: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}


def constant(text: str) -> int | None:
    """The value of an expression of integers; None where it holds anything else."""
    text = re.sub(r"\(\s*(?:u?int|size_t|unsigned)\s*\)", "", re.sub(r"\b(\d+)[uUlL]+\b", r"\1", text))
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, ZeroDivisionError, OverflowError, MemoryError):
        return None


def _value(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return int(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in CONSTANT:
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, (ast.LShift, ast.RShift)) and not 0 <= right < 64:
            raise ValueError
        return int(CONSTANT[type(node.op)](left, right))
    raise ValueError
