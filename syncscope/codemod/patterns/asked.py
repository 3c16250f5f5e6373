"""What the code itself asks of a value: whether it is None, whether it is one number or several."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.model.fact import Value
from syncscope.project.syntax import walk
from syncscope.tensors.facts import Tag

LEAVE = (ast.Return, ast.Raise, ast.Continue, ast.Break)
SEVERAL = (
    "len({it})", "list({it})", "tuple({it})", "enumerate({it})", "zip({it}, *_)", "hasattr({it}, *_)", "iter({it})",
    "numpy.asarray({it}, *_)", "numpy.array({it}, *_)",
)  # fmt: skip


def may_be_several(function: Function, value: ast.expr) -> bool:
    """Whether the code treats a value as more than one number somewhere: `isinstance(x, list)`, `len(x)`, `x[0]`, `for _ in x`.

    Not where a test around says that it is a number here: `if isinstance(x, float): ...`.
    """
    if isinstance(value, ast.UnaryOp):
        return may_be_several(function, value.operand)
    if isinstance(value, ast.BinOp):
        return may_be_several(function, value.left) or may_be_several(function, value.right)
    if not isinstance(value, (ast.Name, ast.Attribute)) or _says_number(function, value):
        return False
    for use in _uses(function, value):
        parent = function.parent(use)
        match parent:
            case ast.Subscript(value=inner) if inner is use:
                return True
            case ast.For(iter=every) | ast.comprehension(iter=every) if every is use:
                return True
            case ast.Starred() | ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[_]):
                return True
            case ast.Call(args=[first, _]) if first is use and function.dotted(parent.func) == "isinstance":
                return True
            case ast.Call() if seen(function, parent, *SEVERAL) is not None:
                return True
    return False


def _says_number(function: Function, value: ast.expr) -> bool:
    """Whether a test says that a value is one number where it stands: in the body of `if isinstance(x, (int, float)):`."""
    fact = function.fact(value)
    return fact.kind is Value.SCALAR and fact.ref is Tag.PROVED


def may_be_none(function: Function, name: ast.Name, before: ast.stmt) -> bool:
    """Whether a name may hold None where a statement begins: the code asks that within it, or None is its default."""
    within = {id(n) for n in walk(before)}
    asking = (use for use in function.reads(name.id) if _asks_none(function, use))
    asked = function.once(f"asked for None {name.id}", function.scope, lambda: list(asking))
    if any(id(use) in within for use in asked):
        return True
    if function.binds(name.id) or not _none_by_default(function, name.id):
        return False
    at = function.file.span(before).start
    return not any(function.file.span(use).start < at and _settles(function, use, before) for use in asked)


def _asks_none(function: Function, use: ast.expr) -> bool:
    """Whether this use asks whether there is anything: `x is not None`, `if x:`, `x and ...`, `isinstance(x, ...)`."""
    parent = function.parent(use)
    match parent:
        case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
            return True
        case ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            return test is use
        case ast.Call(func=called, args=[first, *_]):
            return first is use and function.dotted(called) == "isinstance"
    return False


def _none_by_default(function: Function, name: str) -> bool:
    """Whether a parameter may be left out, and is None then, or its annotation says that it may be None."""
    args = getattr(function.scope, "args", None)
    if not isinstance(args, ast.arguments):
        return False
    plain = [*args.posonlyargs, *args.args]
    given = [
        *zip(reversed(plain), reversed(args.defaults), strict=False),
        *zip(args.kwonlyargs, args.kw_defaults, strict=True),
    ]
    default = next((value for arg, value in given if arg.arg == name), None)
    said = next((a.annotation for a in (*plain, *args.kwonlyargs) if a.arg == name), None)
    text = ast.unparse(said) if said is not None else ""
    return (isinstance(default, ast.Constant) and default.value is None) or "None" in text or "Optional" in text


def _settles(function: Function, use: ast.expr, before: ast.stmt) -> bool:
    """Whether what is asked leaves no None for a statement: it stands in the arm, or the other arm has left."""
    choice = next((n for n in function.around(use) if isinstance(n, (ast.If, ast.Assert))), None)
    if isinstance(choice, ast.Assert):
        return True
    if choice is None:
        return False
    inside = any(before is n or n in function.around(before) for n in (*choice.body, *choice.orelse))
    return inside or (bool(choice.body) and isinstance(choice.body[-1], LEAVE))


def _uses(function: Function, value: ast.Name | ast.Attribute) -> Iterator[ast.expr]:
    """Every place where this function reads the same name or attribute."""
    kinds = function.reads(value.id) if isinstance(value, ast.Name) else function.every(ast.Attribute)
    return (use for use in kinds if function.same(use, value))


def asks_for_any(test: ast.expr) -> bool:
    """Whether a test asks whether there is anything, `n > 0`, which most often holds: then it is read all the same."""
    match test:
        case ast.Compare(ops=[ast.Gt() | ast.NotEq()], comparators=[ast.Constant(value=0)]):
            return not any(isinstance(each, ast.Mod) for each in ast.walk(test))
        case ast.Compare(ops=[ast.GtE()], comparators=[ast.Constant(value=1)]):
            return True
    return False
