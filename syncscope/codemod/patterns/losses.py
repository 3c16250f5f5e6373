"""Calls of losses: the input and the target, what they select by a mask, and how the loss is told to reduce."""

from __future__ import annotations

import ast
from typing import NamedTuple

from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.positions import Rows, rows_of
from syncscope.codemod.proofs import is_mask, taken_for_mask
from syncscope.codemod.writes import changed
from syncscope.model.fact import Site
from syncscope.project.syntax import text_of


class Loss(NamedTuple):
    """A call of a loss."""

    name: str
    call: ast.Call  # with the input and the target
    settings: ast.Call  # with reduction, weight, ...: the same call, or the one that made the module
    input: ast.expr
    target: ast.expr


class Selection(NamedTuple):
    """`base[mask]`, or `base[rows]` with the rows of a mask."""

    base: ast.expr
    mask: ast.expr
    gone: list[ast.AST]  # expressions that made it and are not needed without it
    rows: Rows | None = None
    cast: bool = False  # `base[mask].long()`


def enclosing_loss(function: Function, node: ast.AST, names: set[str]) -> Loss | None:
    """The loss of which this is an argument, directly, through a reshape or through a name that is used once."""
    for _ in range(2):
        for outer in function.around(node):
            if isinstance(outer, ast.stmt):
                break
            if isinstance(outer, ast.Call) and (loss := as_loss(function, outer, names)) is not None:
                return loss
        statement = function.statement(node)
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            return None
        reads = function.reads(statement.targets[0].id)
        if len(reads) != 1 or function.reaching_definition(reads[0]) is not statement:
            return None
        node = reads[0]
    return None


def as_loss(function: Function, call: ast.Call, names: set[str]) -> Loss | None:
    """A call as a loss with an input and a target."""
    settings = call
    if isinstance(call.func, ast.Call):
        settings = call.func
    elif isinstance(call.func, ast.Name) and isinstance(made := function.value(call.func), ast.Call):
        settings = made
    elif isinstance(call.func, ast.Attribute) and (kept := function.maker(call.func)) is not None:  # self.criterion
        settings = kept
    name = function.dotted(settings.func)
    keywords = {k.arg: k.value for k in call.keywords}
    arguments = [*call.args, *(keywords[k] for k in ("input", "target") if k in keywords)]
    if name is None or name not in names or len(arguments) < 2 or None in keywords:
        return None
    return Loss(name, call, settings, arguments[0], arguments[1])


def setting(loss: Loss, name: str) -> ast.expr | None:
    """What a loss was told by keyword."""
    return next((k.value for k in loss.settings.keywords if k.arg == name), None)


def reduction(loss: Loss) -> str | None:
    """How a loss is reduced: "mean", "sum" or "none"; None where that cannot be seen."""
    if any(k.arg is None for k in loss.settings.keywords) or setting(loss, "reduce") or setting(loss, "size_average"):
        return None
    if len(loss.settings.args) > (2 if loss.settings is loss.call else 0):
        return None
    node = setting(loss, "reduction")
    if node is None:
        return "mean"
    return text_of(node)


def selection(site: Site, function: Function, expr: ast.expr) -> Selection | None:
    """An argument as what a mask selects: `x[m]`, or over classes `x[m.unsqueeze(-1).expand_as(x)].view(-1, classes)`.

    What is called a mask, as no list of positions is, is one.
    """
    gone: list[ast.AST] = []
    defined = function.reaching_definition(expr)
    if defined is not None:
        if len(function.reads(getattr(expr, "id", ""))) != 1:
            return None
        gone.append(defined.value)
        expr = defined.value
    op = function.op(expr)
    cast = op is not None and op.name == "long" and not op.args and not op.keywords
    if op is not None and cast:
        expr = op.base
        op = function.op(expr)
    flat = (
        op is not None and op.name in ("view", "reshape") and len(op.args) == 2 and function.constant(op.args[0]) == -1
    )
    if op is not None and flat:
        expr = op.base
    if not isinstance(expr, ast.Subscript):
        return None
    mask = expr.slice
    if (rows := rows_of(function, mask)) is not None and not flat:
        gone.append(rows.statement.value)
        mask = rows.mask
    elif not is_mask(site.fact_of(mask)) and not taken_for_mask(mask, site.fact_of(mask)):
        return None
    if flat:
        spread = function.op(function.value(mask))
        if (
            spread is None
            or spread.name != "expand_as"
            or not spread.args
            or not function.same(spread.args[0], expr.value)
        ):
            return None
        inner = unsqueezed(function, spread.base)
        if inner is None:
            return None
        gone += [mask, spread.base]
        mask = inner
    if defined is not None and changed(function, defined, site.node, expr):
        return None
    return Selection(expr.value, mask, gone, rows, cast)


def unsqueezed(function: Function, expr: ast.expr) -> ast.expr | None:
    """What got one dimension more at its end."""
    found = seen(function, expr, "{m}.unsqueeze(-1)", "{m}[..., None]")
    return found["m"] if found is not None else None
