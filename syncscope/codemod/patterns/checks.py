"""A check that fails on the device: what it says then."""

from __future__ import annotations

import ast
from collections.abc import Collection

from syncscope.codemod.function import Function

LATER = (
    "the error is a RuntimeError that comes later, after further steps were asked for",
    "on CUDA the device is then lost",
)


def message(
    function: Function, said: ast.expr | None, test: ast.expr, gone: Collection[ast.expr] = ()
) -> ast.expr | str | None:
    """What the check says: the message that was written, where it is a text that is made on the host and of nothing that goes
    (`gone`); the test's own text where none was. None where a message would be lost: who debugs needs it more than the time.
    """
    if said is None or (isinstance(said, ast.Constant) and said.value is None):
        return repr(" ".join(function.file.text(test).split()))
    held = [n for n in ast.walk(said) if isinstance(n, ast.expr)]
    kept = is_text(said) and not any(function.fact(n).is_tensor or n in gone for n in held)
    return said if kept else None


def is_text(node: ast.expr) -> bool:
    """Whether an expression is a string, whatever its parts are: a literal, one that is formatted, or such in a row."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, str)
        case ast.JoinedStr():
            return True
        case ast.BinOp(left=left, op=ast.Mod()) | ast.Call(func=ast.Attribute(value=left, attr="format")):
            return is_text(left)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return is_text(left) and is_text(right)
    return False
