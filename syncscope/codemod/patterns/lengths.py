"""How many rows or elements a tensor has, as users ask for it."""

from __future__ import annotations

import ast

from syncscope.codemod.function import Function

COUNTED = "the count is a 0-d tensor that stays on the device, no Python int: what needs an int will read it"


def length(function: Function, tensor: ast.expr) -> ast.expr | None:
    """The expression around a tensor that is its number of rows: `len(t)`, `t.shape[0]`, `t.size(0)`."""
    parent = function.parent(tensor)
    if isinstance(parent, ast.Call) and parent.args == [tensor] and function.dotted(parent.func) == "len":
        return parent
    if not isinstance(parent, ast.Attribute):
        return None
    outer = function.parent(parent)
    if parent.attr == "shape" and isinstance(outer, ast.Subscript) and zero(outer.slice):
        return outer
    if parent.attr == "size" and isinstance(outer, ast.Call) and len(outer.args) == 1 and zero(outer.args[0]):
        return outer
    return None


def zero(node: ast.expr) -> bool:
    """Whether this is the number 0."""
    return isinstance(node, ast.Constant) and node.value == 0 and not isinstance(node.value, bool)


def number_of_elements(function: Function, tensor: ast.expr) -> ast.expr | None:
    """The call `t.numel()` or `t.nelement()` around a tensor."""
    parent = function.parent(tensor)
    call = function.parent(parent) if isinstance(parent, ast.Attribute) else None
    if isinstance(parent, ast.Attribute) and parent.attr in ("numel", "nelement") and isinstance(call, ast.Call):
        return call
    return None
