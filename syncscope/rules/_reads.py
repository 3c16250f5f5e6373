"""Reads of single numbers: what is read, and what need not be."""

from __future__ import annotations

import ast

from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules._function import Function

STAYS = "it is a tensor that stays on the device, no Python number: what needs a number will read it"


def tensor_read(node: ast.AST | None, function: Function) -> ast.expr | None:
    """The tensor t of `t.item()` or `float(t)`, or `int(t)` where t holds integers."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
        return node.func.value
    called = function.dotted(node.func)
    if len(node.args) == 1 and (
        called == "float" or (called == "int" and function.fact(node.args[0]).dtype is Dtype.INT)
    ):
        return node.args[0]
    return None


def clamped(site: Site, function: Function) -> Fix | None:
    """`max(t.item(), 1)` as `t.clamp(min=1)`, directly or with the number named in between."""
    tensor, read = tensor_read(site.node, function), site.node
    if tensor is None or not isinstance(read, ast.Call):
        return None
    used: ast.expr = read
    statement = function.parent(read)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name) and len(statement.targets) == 1:
        reads = function.reads(statement.targets[0].id)
        if len(reads) != 1 or function.definition(reads[0]) is not statement:
            return None
        used = reads[0]
    call = function.parent(used)
    if not isinstance(call, ast.Call) or len(call.args) != 2 or call.keywords:
        return None
    which = function.dotted(call.func)
    other = call.args[1] if call.args[0] is used else call.args[0]
    if which not in ("max", "min") or function.constant(other) is None:
        return None
    bound = "min" if which == "max" else "max"
    cut = "" if site.fact.dtype in (Dtype.INT, Dtype.BOOL) else ".detach()"  # as the number was
    draft = function.draft()
    if used is read:
        draft.replace(call, f"{{t}}{cut}.clamp({bound}={{c}})", t=tensor, c=other)
    else:
        draft.replace(read, f"{{t}}{cut}", t=tensor)
        draft.replace(call, f"{{t}}.clamp({bound}={{c}})", t=used, c=other)
    return draft.fix("keep it on the device, and clamp", Safety.UNSAFE, STAYS)


def checked_later(site: Site, function: Function) -> Fix | None:
    """`if not math.isfinite(loss.item()): raise` as a check on the device."""
    tensor, asked = tensor_read(site.node, function), function.parent(site.node)
    if tensor is None or not isinstance(asked, ast.Call) or asked.args != [site.node]:
        return None
    name = (function.dotted(asked.func) or "").removeprefix("math.").removeprefix("numpy.")
    test = function.parent(asked)
    wrong = not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))
    statement = function.statement(asked)
    if (
        name not in ("isfinite", "isnan", "isinf")
        or wrong is (name == "isfinite")
        or not isinstance(statement, ast.If)
        or statement.test is not (asked if wrong else test)
        or statement.orelse
        or not isinstance(statement.body[-1], ast.Raise)
        or len(statement.body) != 1
    ):
        return None
    draft = function.draft()
    good = f"{'~' if wrong else ''}torch.{name}({{t}})"
    draft.replace(statement, f"torch._assert_async({good}, {{said}})", t=tensor, said=repr(function.view.text(asked)))
    return draft.fix(
        "let the device check",
        Safety.SUGGEST,
        "the error is a RuntimeError that comes later, after further steps were asked for; on CUDA the device is then lost",
    )
