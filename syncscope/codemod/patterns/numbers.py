"""Numbers as users write them down: `1.0`, `float("inf")`, `math.pi`."""

from __future__ import annotations

import ast

from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.model.fact import Device, Dtype, Fact, Value
from syncscope.tensors import conventions
from syncscope.tensors.syntax import name_of

SPECIAL = {f"{module}.{word}" for module in ("math", "torch") for word in ("inf", "nan", "pi", "e")}
PROMOTED = "a number of another dtype is converted, or the result promoted, instead of raising an error"


def named(node: ast.expr) -> bool:
    """Whether this is a name or an attribute of one, `x`, `self.x`: written twice, it is not computed twice."""
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
    if (negative := seen(function, value, "-{x}")) is not None:
        return special(function, negative["x"])
    if seen(function, value, "float('inf')", "float('-inf')", "float('nan')") is not None:
        return True
    return function.dotted(value) in SPECIAL


def python_number(function: Function, node: ast.expr) -> bool:
    """Whether this is a number of Python's own: one of numpy's, or a tensor, gives what it meets its own dtype."""
    fact = function.fact(node)
    known = fact.kind is Value.SCALAR and fact.confidence == 3 and fact.dtype in (Dtype.INT, Dtype.FLOAT)
    made = function.value(node)
    if (
        seen(function, made, "{x}.item()", "len({x})", "int({x})", "float({x})", "{x}.size({n})", "{x}.numel()")
        is not None
    ):
        return True
    name = name_of(node)  # `num_tokens` may be a tensor that was counted just before
    called = name == "batch_size" or (isinstance(node, ast.Attribute) and conventions.counts(name))
    return known or function.constant(node) is not None or called
