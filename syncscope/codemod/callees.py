"""Which function of its own file or project a call runs, where that is plain to see: `check(x)`, `self._check(x)`."""

from __future__ import annotations

import ast

from syncscope.codemod.function import Function
from syncscope.codemod.view import View
from syncscope.project.modules import Class, ProjectFunction
from syncscope.project.names import find_method, member
from syncscope.tensors.attributes import attribute
from syncscope.tensors.instances import Instance

NOT_AT_ONCE = (ast.Yield, ast.YieldFrom, ast.Await)
AS_WRITTEN = {"staticmethod", "classmethod", "no_grad", "final", "override"}
"""Decorators below which a function runs as it stands."""


def callee(view: View, function: Function, call: ast.Call, modules: bool = False) -> Function | None:
    """The function that a call runs: of a plain body, and not one that stands there to be overridden; of `modules` their
    `forward`, too."""
    known = _meant(function, call.func, modules)
    if known is None or not isinstance(known.node, ast.FunctionDef) or _stub(known.node):
        return None
    if not known.decorators() <= AS_WRITTEN:
        return None
    called = view.of(known.node) if known.module.linted else view.elsewhere(known)
    return None if called.every(*NOT_AT_ONCE) else called


def _meant(function: Function, called: ast.expr, modules: bool) -> ProjectFunction | None:
    """The function of the project that a name, an attribute of a module or a method of `self` stands for, or that runs where an
    object of the project is called: `self.decoder(x)`.
    """
    made = function.fact(called).ref
    if made is None and isinstance(called, ast.Attribute):
        kept = attribute(function.fact(called.value), called.attr)
        made = kept.ref if kept is not None else None
    if isinstance(made, Instance):
        return find_method(made.cls, "__call__") or (find_method(made.cls, "forward") if modules else None)
    if isinstance(called, ast.Name):
        found = function.fact(called).ref
    elif isinstance(called, ast.Attribute):
        owner = function.fact(called.value)
        ref = owner.ref
        if not isinstance(called.value, ast.Name) and not isinstance(ref, Instance):
            return None
        cls = ref.cls if isinstance(ref, Instance) else ref
        found = find_method(cls, called.attr) if isinstance(cls, Class) else member(owner, called.attr).ref
    else:
        return None
    return found if isinstance(found, ProjectFunction) else None


def _stub(node: ast.FunctionDef) -> bool:
    """Whether a function does nothing by itself."""
    return all(isinstance(each, (ast.Pass, ast.Raise)) or _says(each) for each in node.body)


def _says(statement: ast.stmt) -> bool:
    """Whether a statement only holds a constant, or gives one: a docstring, `...`, `return None`."""
    if not isinstance(statement, (ast.Expr, ast.Return)):
        return False
    return statement.value is None or isinstance(statement.value, ast.Constant)
