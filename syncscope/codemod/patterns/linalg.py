"""Calls of linear algebra that check whether they succeeded."""

from __future__ import annotations

import ast

from syncscope.codemod.function import Function

WITHOUT_CHECK = {  # the form that does not check, and its field that is the result
    "torch.linalg.inv": ("inv_ex", "inverse"),
    "torch.inverse": ("inv_ex", "inverse"),
    "torch.linalg.solve": ("solve_ex", "result"),
    "torch.linalg.cholesky": ("cholesky_ex", "L"),
    "torch.cholesky": ("cholesky_ex", "L"),
    "torch.linalg.lu_factor": ("lu_factor_ex", ""),
    "torch.linalg.ldl_factor": ("ldl_factor_ex", ""),
}
METHODS = {"inverse": "torch.inverse", "cholesky": "torch.cholesky"}  # of a tensor: the same functions


def called(function: Function, node: ast.AST) -> str:
    """The full name of what is called; of a method, that of the same function."""
    if not isinstance(node, ast.Call):
        return ""
    method = METHODS.get(node.func.attr, "") if isinstance(node.func, ast.Attribute) else ""
    return function.dotted(node.func) or method
