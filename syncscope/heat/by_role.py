"""Cold by what a function is for in its project, whatever it is called, or since nothing ever runs it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from syncscope.heat.by_code import computes_as_a_loss, is_made_by_set_up
from syncscope.model.heat import Heat, Reason, Role
from syncscope.model.source import line_starts
from syncscope.project import in_training
from syncscope.project.bindings import Definition
from syncscope.project.modules import Module, ProjectFunction
from syncscope.project.of_file import MANY, kept
from syncscope.project.syntax import statements


def by_role(function: ProjectFunction, maybe: bool) -> Heat | None:
    """Cold by what a function, or the one around it, is for in its project; `maybe`: no name says that it runs in steps."""
    outermost = function
    while (around := getattr(outermost.closure, "function", None)) is not None:
        outermost = around
    module, owner = outermost.module, outermost.cls.name if outermost.cls is not None else ""
    if not module.path.endswith(".ipynb") and (name := _defined_again(outermost)) is not None:  # cells run one by one
        return Reason.REDEFINED(name)
    case = _Case(function, outermost, owner, maybe)
    judge = _JUDGES.get(module.project.role(module.path, outermost.name, owner))
    return judge(case) if judge is not None else None


class _Case(NamedTuple):
    """A function, the one around it that its project knows, with its class, and whether no name says that it runs in steps."""

    function: ProjectFunction
    outermost: ProjectFunction
    owner: str
    maybe: bool


def for_others(function: ProjectFunction) -> Heat:
    """Of what a package offers, and no step of it calls: in a line where it is among losses, operators and the like, or sends
    batches, else cold.

    Of what stands elsewhere most is for before, beside or after the training.
    """
    module = function.module
    words = {*module.package[1:], Path(module.path).stem.strip("_")}
    sends = in_training.SENDS.search(function.name) is not None
    in_steps = sends or not words.isdisjoint(in_training.FOLDERS) or computes_as_a_loss(function)
    return (Reason.FOR_OTHERS if in_steps else Reason.UNASKED)(function.name)


@kept(MANY)
def _gives_numbers(function: ProjectFunction) -> bool:
    """Whether all that it gives has been read from the device: `return total.item() / count`."""
    given = [each for each in statements(function.node) if isinstance(each, ast.Return)]
    return bool(given) and all(each.value is not None and _is_read(each.value) for each in given)


_JUDGES: dict[Role, Callable[[_Case], Heat | None]] = {
    Role.PREPARES: lambda case: Reason.PREPARES(case.owner),
    Role.OVERRIDDEN: lambda case: Reason.OVERRIDDEN(case.owner, case.outermost.name),
    Role.SELDOM: lambda case: Reason.COUNTED(case.outermost.name) if case.maybe else None,
    Role.UNTRAINED: lambda case: Reason.UNTRAINED(case.owner or case.outermost.name),
    Role.UNREACHED: lambda case: (
        Reason.UNREACHED(case.function.name) if case.maybe and not is_made_by_set_up(case.function) else None
    ),
    Role.PUBLIC: lambda case: for_others(case.function) if case.maybe else None,
    Role.UNUSED: lambda case: Reason.UNUSED(case.owner or case.outermost.name) if case.maybe or case.owner else None,
    Role.NAMESAKE: lambda case: Reason.NAMESAKE(case.function.name) if case.maybe else None,
    Role.OFFERED: lambda case: (
        Reason.OFFERED(case.outermost.name) if case.maybe and _gives_numbers(case.outermost) else None
    ),
}


def _is_read(node: ast.expr) -> bool:
    """Whether this is a number that was read, or made of one."""
    match node:
        case ast.Call(func=ast.Attribute(attr="item" | "tolist"), args=[]):
            return True
        case ast.Call(func=ast.Name(id="float" | "int")):
            return True
        case ast.BinOp(left=left):
            return _is_read(left)
    return False


def _defined_again(function: ProjectFunction) -> str | None:
    """The function, or its class, where the same body defines another of its name, and does nothing with it until then."""
    cls = function.cls
    tree = function.module.tree
    if cls is not None and _is_bound_again(cls.node, tree, function.module):
        return cls.name
    around = cls.node if cls is not None else tree
    return function.name if _is_bound_again(function.node, around, function.module) else None


@kept(8)  # asked for each function in it
def _last_defined(around: ast.Module | ast.ClassDef) -> dict[str, Definition]:
    """The definitions of a body by their names, of several the last."""
    return {each.name: each for each in around.body if isinstance(each, Definition)}


def _is_bound_again(node: Definition, around: ast.Module | ast.ClassDef, module: Module) -> bool:
    last = _last_defined(around).get(node.name, node)
    if last.lineno <= node.lineno or node.decorator_list or last.decorator_list or node not in around.body:
        return False  # a decorator may keep the first, or is what makes it another: `@overload`, `@size.setter`
    starts = line_starts(module.source)
    between = module.source[starts[node.end_lineno or 0] : starts[last.body[0].lineno - 1]]
    return len(re.findall(rb"\b%b\b" % node.name.encode(), between)) == 1
