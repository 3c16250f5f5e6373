"""How many rows or elements a tensor has, as users ask for it."""

from __future__ import annotations

import ast

from syncscope.codemod.function import Function
from syncscope.codemod.pattern import around

COUNTED = "the count is a 0-d tensor that stays on the device, no Python int: what needs an int will read it"


def length(function: Function, tensor: ast.expr) -> ast.expr | None:
    """The expression around a tensor that is its number of rows: `len(t)`, `t.shape[0]`, `t.size(0)`."""
    found = around(function, tensor, "len({it})", "{it}.shape[0]", "{it}.size(0)")
    return found.node if found is not None else None


def number_of_elements(function: Function, tensor: ast.expr) -> ast.expr | None:
    """The call `t.numel()` or `t.nelement()` around a tensor."""
    found = around(function, tensor, "{it}.numel()", "{it}.nelement()")
    return found.node if found is not None else None
