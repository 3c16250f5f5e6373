"""Whether a value may be a Python number where it also may be a tensor: then no method can be called."""

from __future__ import annotations

import ast
from functools import partial

from syncscope.codemod.function import Function
from syncscope.codemod.names_and_calls import number
from syncscope.model.fact import Value
from syncscope.project.syntax import name_of, statements, walk
from syncscope.tensors.facts import Tag

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def mixed(function: Function, node: ast.expr) -> bool:
    """Whether an expression may be a number or a tensor, or is made of a name that may be, and that no test around it tells."""
    if any(_either(function, n) for n in walk(node) if isinstance(n, (ast.IfExp, ast.Call, ast.BoolOp))):
        return True
    for name in (n for n in walk(node) if isinstance(n, ast.Name)):
        fact = function.fact(name)
        if fact.is_tensor and fact.ref is not Tag.PROVED:
            if _asked_later(function, name):
                return True
            if function.reaching_definition(name) is None and (
                _given_number(function, name.id) or _passed_number(function, name.id)
            ):
                return True
            if function.once(f"may get {name.id}", function.scope, partial(_may_get_number, function, name.id)):
                return True
    return False


def asked_for_kinds(function: Function, node: ast.expr) -> bool:
    """Whether this is an argument that code asks what it is, and which is not proved to be a tensor: `isinstance(tau, float)`;
    it may be a list as well."""
    if not isinstance(node, ast.Name) or function.fact(node).ref is Tag.PROVED:
        return False
    return function.reaching_definition(node) is None and _last_asked(function, node.id) > 0


def _asked_later(function: Function, name: ast.Name) -> bool:
    """Whether code further down asks what this is, `isinstance(x, torch.Tensor)`: it may be something else."""
    return name.lineno < function.once(f"asked {name.id}", function.scope, lambda: _last_asked(function, name.id))


def _last_asked(function: Function, name: str) -> int:
    """The last line in which code asks what a name is; 0 where none does."""
    asking = ((function.parent(use), use.lineno) for use in reversed(function.reads(name)))
    lines = (at for c, at in asking if isinstance(c, ast.Call) and function.dotted(c.func) == "isinstance")
    return next(lines, 0)


def _either(function: Function, node: ast.expr) -> bool:
    """Whether code chooses between a number and a tensor: `t.max() if len(t) else 0`, `max(t, 0)`, `t is None or t.all()`."""
    match node:
        case ast.BoolOp(values=values):
            pass
        case ast.IfExp(body=a, orelse=b):
            values = [a, b]
        case ast.Call(func=ast.Name(id="max" | "min"), args=values, keywords=[]):
            pass
        case _:
            return False
    return any(_is_number(function, v) for v in values) and any(function.fact(v).is_tensor for v in values)


def _is_number(function: Function, value: ast.expr) -> bool:
    return number(value) is not None or function.fact(value).kind is Value.SCALAR


def _given_number(function: Function, name: str) -> bool:
    return function.once(f"given a number {name}", function.scope, lambda: _is_given_number(function, name))


def _is_given_number(function: Function, name: str) -> bool:
    given = (p.value for n in function.binds(name) if isinstance(p := function.parent(n), ast.Assign))
    return any(_is_number(function, v) or _either(function, v) for v in given)


def _passed_number(function: Function, name: str) -> bool:
    return function.once(f"passed a number {name}", function.scope, lambda: _is_passed_number(function, name))


def _is_passed_number(function: Function, name: str) -> bool:
    """Whether a call in the file that may be of this function passes a number where it has this parameter: what is called a
    meter's `update` is one's, whatever holds the meter."""
    scope = function.scope
    if name not in function.parameters or not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    named = [each.arg for each in (*scope.args.posonlyargs, *scope.args.args)]
    if function.file.class_around(scope) is not None and not any(map(_is_static, scope.decorator_list)):
        named = named[1:]
    for call in function.file.calls.get(scope.name, ()):
        given = next((k.value for k in call.keywords if k.arg == name), None)
        if given is None and name in named[: len(call.args)]:
            given = call.args[named.index(name)]
        if given is not None and (number(given) is not None or function.fact_given(call, given).kind is Value.SCALAR):
            return True
    return False


def _may_get_number(function: Function, name: str) -> bool:
    """Whether a name is bound to what a function of the file gives that gives a number in one of its ways."""
    for bound in function.binds(name):
        statement = function.statement(bound)
        match statement:
            case ast.Assign(targets=[ast.Name()], value=ast.Call(func=called)):
                place = None
            case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Call(func=called)) if bound in parts:
                place = parts.index(bound)
            case _:
                continue
        named = (s for s in function.file.statements if isinstance(s, FUNCTIONS) and s.name == name_of(called))
        if any(_gives_number(each, place) for each in named):
            return True
    return False


def _gives_number(called: ast.FunctionDef | ast.AsyncFunctionDef, place: int | None) -> bool:
    """Whether a function gives a number that is written out, at this place of a tuple: itself, or by a name bound to one."""
    for given in (s.value for s in statements(called) if isinstance(s, ast.Return)):
        part = (
            given.elts[place]
            if isinstance(given, ast.Tuple) and place is not None and place < len(given.elts)
            else given
        )
        if number(part) is not None:
            return True
        if isinstance(part, ast.Name) and _stays_number(called, part.id):
            return True
    return False


def _stays_number(called: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """Whether a name is bound to a number to which nothing is added: `loss = 0.0`, and something else in an arm behind it."""
    values: list[ast.expr] = []
    for statement in statements(called):
        match statement:
            case ast.AugAssign(target=ast.Name(id=bound)) if bound == name:
                return False
            case ast.Assign(targets=[ast.Name(id=bound)], value=value) if bound == name:
                values.append(value)
    added = any(isinstance(n, ast.Name) and n.id == name for value in values for n in walk(value))
    return not added and any(number(value) is not None for value in values)


def _is_static(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Name) and decorator.id == "staticmethod"
