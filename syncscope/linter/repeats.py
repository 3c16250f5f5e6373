"""How often a step comes by: whether a wait stands in a loop inside of it, over samples, layers or boxes."""

from __future__ import annotations

import ast

from syncscope.heat.loops import over_loader, trains
from syncscope.model.fact import Site
from syncscope.model.heat import IN_AN_ARM
from syncscope.model.ops import Op
from syncscope.project import conventions
from syncscope.project.syntax import name_of, walk
from syncscope.rules import Function, View

Loop = ast.For | ast.AsyncFor | ast.While


def repeats(site: Site, function: Function, view: View) -> bool:
    """Whether a step comes by many times: in a loop or a comprehension of its function that is not the loop over steps."""
    if site.function is None or site.heat.reason in IN_AN_ARM:
        return False
    child, inner, sent = site.node, site.node, ""
    for outer in function.around(site.node):
        match outer:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() | ast.ClassDef():
                return False
            case ast.For() | ast.AsyncFor() | ast.While() if sent and _sets_once(outer, sent):
                pass  # it copies in the first pass alone
            case ast.For() | ast.AsyncFor() if child in outer.body:
                return not _over_steps(outer, site.function.name, function, view)
            case ast.While() if child is outer.test or child in outer.body:
                return not _over_steps(outer, site.function.name, function, view)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                first = outer.generators[0]
                if child is not first or inner is not first.iter:  # which is gone through, and made once
                    return not over_loader(first.iter)
        child, inner, sent = outer, child, sent or _sent(site, outer)
    return False


def _sent(site: Site, statement: ast.AST) -> str:
    """What a statement sends and keeps under its own name: `d = d.to(p.device)`; "" for any other."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(value=ast.Name(id=of)))) if (
            name == of and statement.value is site.node and site.op in (Op.TO_DEVICE, Op.CPU)
        ):
            return name
    return ""


def _sets_once(loop: Loop, name: str) -> bool:
    bound = (each for each in walk(loop) if isinstance(each, ast.Name) and each.id == name)
    return sum(not isinstance(each.ctx, ast.Load) for each in bound) == 1


def _over_steps(loop: Loop, name: str, function: Function, view: View) -> bool:
    """Whether the passes of a loop are steps, or hold many: asked of all that waits in it, and looked for once."""
    return function.once("over steps", loop, lambda: _passes_are_steps(loop, name, view.code))


def _passes_are_steps(loop: Loop, name: str, code: bytes) -> bool:
    if trains(loop, name, code):
        return True
    if isinstance(loop, ast.While):
        return False
    return over_loader(loop.iter) or any(conventions.is_epoch(name_of(each)) for each in walk(loop.target))
