"""Which function of its own file or project a call runs, where that is plain to see: `check(x)`, `self._check(x)`."""

from __future__ import annotations

import ast

from syncscope.codemod.function import Function
from syncscope.codemod.view import View
from syncscope.project.modules import ProjectFunction
from syncscope.project.names import find_method, member
from syncscope.tensors.instances import Instance

NOT_AT_ONCE = (ast.Yield, ast.YieldFrom, ast.Await)
AS_WRITTEN = {"staticmethod", "classmethod", "no_grad"}  # decorators below which a function runs as it stands


def callee(view: View, function: Function, call: ast.Call) -> Function | None:
    """The function that a call runs: of a plain body, and not one that stands there to be overridden."""
    found = None if function.elsewhere else _definition(view, function, call.func)
    known = _elsewhere(function, call.func) if found is None else None
    node = found or (known.node if known is not None else None)
    if not isinstance(node, ast.FunctionDef) or _stub(node):
        return None
    if not {_last(each) for each in node.decorator_list} <= AS_WRITTEN:
        return None
    called = view.of(node) if known is None else view.elsewhere(known)
    return None if called.every(*NOT_AT_ONCE) else called


def _elsewhere(function: Function, called: ast.expr) -> ProjectFunction | None:
    """The function of the project that a name, an attribute of a module or a method of `self` stands for."""
    if isinstance(called, ast.Name):
        found = function.fact(called).ref
    elif isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        owner = function.fact(called.value)
        ref = owner.ref
        found = find_method(ref.cls, called.attr) if isinstance(ref, Instance) else member(owner, called.attr).ref
    else:
        return None
    return found if isinstance(found, ProjectFunction) and not found.module.linted else None


def _definition(view: View, function: Function, called: ast.expr) -> ast.FunctionDef | None:
    if isinstance(called, ast.Name):
        if called.id in function.parameters or function.binds(called.id):
            return None
        inner = _only(called.id, getattr(function.scope, "body", []))
        return inner or _only(called.id, view.tree.body)
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id in ("self", "cls"):
        classes = (each for each in view.tree.body if isinstance(each, ast.ClassDef) and function.scope in each.body)
        own = next(classes, None)
        return _only(called.attr, own.body) if own is not None else None
    return None


def _only(name: str, body: list[ast.stmt]) -> ast.FunctionDef | None:
    """What a block defines by this name, once."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = [each for each in body if isinstance(each, kinds) and each.name == name]
    return found[0] if len(found) == 1 and isinstance(found[0], ast.FunctionDef) else None


def _stub(node: ast.FunctionDef) -> bool:
    """Whether a function does nothing by itself."""
    return all(isinstance(each, (ast.Pass, ast.Raise)) or _says(each) for each in node.body)


def _says(statement: ast.stmt) -> bool:
    """Whether a statement only holds a constant, or gives one: a docstring, `...`, `return None`."""
    if not isinstance(statement, (ast.Expr, ast.Return)):
        return False
    return statement.value is None or isinstance(statement.value, ast.Constant)


def _last(decorator: ast.expr) -> str:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
