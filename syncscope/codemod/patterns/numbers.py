"""Numbers as users write them down: `1.0`, `float("inf")`, `math.pi`."""

from __future__ import annotations

import ast

from syncscope.codemod.function import Function
from syncscope.model.fact import Device, Fact, Value

PROMOTED = "a number of another dtype is converted, or the result promoted, instead of raising an error"


def named(node: ast.expr) -> bool:
    """`x`, `self.x`: what may be said twice."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def written_out(function: Function, value: ast.expr) -> bool:
    """Whether this is surely a Python number."""
    plain = isinstance(value, ast.Constant) and isinstance(value.value, (bool, int, float))
    return plain or function.constant(value) is not None or special(function, value)


def number_on_device(fact: Fact) -> bool:
    """Whether this is a tensor without dimensions that may be on the device."""
    return fact.kind is Value.TENSOR and fact.ndim == 0 and fact.device is not Device.HOST


def special(function: Function, value: ast.expr) -> bool:
    """Whether this is surely a Python float that no digits are written for: `float("inf")`, `math.pi`."""
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        return special(function, value.operand)
    if isinstance(value, ast.Call):
        word = value.args[0] if len(value.args) == 1 and function.dotted(value.func) == "float" else None
        return isinstance(word, ast.Constant) and word.value in ("inf", "-inf", "nan")
    name = function.dotted(value)
    return name in {f"{module}.{word}" for module in ("math", "torch") for word in ("inf", "nan", "pi", "e")}
