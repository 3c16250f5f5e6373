"""What waits beside the training, or on the host alone, as far as names tell.

It may run in every step of somebody who is not seen.
"""

from __future__ import annotations

import ast
import re

from syncscope.heat.by_name import by_name
from syncscope.model.fact import Site
from syncscope.model.finding import Finding, Stays
from syncscope.model.heat import IN_TRAINING, Heat, Reason
from syncscope.model.ops import VALUES
from syncscope.project import conventions
from syncscope.project.on_host import trains_on_host
from syncscope.project.syntax import name_of
from syncscope.rules import Function

_OF_HOST = re.compile(r"(^|_)cpu(_|$)", re.IGNORECASE)
_KNOWN = frozenset((Reason.CONFIGURED, Reason.MEASURED))  # somebody knows that it runs
_MOVED_BY_NONE = frozenset(("Module", "object", "ABC"))  # bases that move nothing to a device
_PLAIN = _MOVED_BY_NONE | {"Function"}  # bases that call no methods but their own hooks
_CALLED = frozenset((*conventions.HOT, *conventions.HOOKS, "forward", "update", "compute", "reset"))
"""Methods that are called by who holds an object, whatever it is."""


def of_host(finding: Finding, site: Site, function: Function) -> str:
    """The name of its function, or of its class, that says that it is for the host."""
    return next((each for each in finding.function.split(".") if _OF_HOST.search(each)), "")


def trained_on_host(finding: Finding, site: Site, function: Function) -> bool:
    """Whether its project knows no device, or the class or function at the top of its file trains what it makes there."""
    file = function.file
    if file.project.on_host():
        return True
    if finding.heat.reason in IN_TRAINING and b"__main__" in file.code:  # of a program it is the whole file that trains
        return trains_on_host(file.code) and not file.project.switches_default()
    around = file.on_top(site.node.lineno) if isinstance(site.node, ast.expr | ast.stmt) else None
    if not isinstance(around, ast.FunctionDef | ast.ClassDef):
        return False
    if isinstance(around, ast.ClassDef) and not all(name_of(base) in _MOVED_BY_NONE for base in around.bases):
        return False
    span = file.span(around)
    there = file.once(f"trains on the host: {span.start}", lambda: trains_on_host(file.code[span.start : span.end]))
    return there and not file.project.switches_default()


def unspoken(finding: Finding, site: Site, function: Function) -> str:
    """What it stands in that nothing in its project names: it is dead, or for somebody who is not seen."""
    if finding.heat.reason in _KNOWN or not finding.function:
        return ""
    owner, *within = finding.function.split(".")
    within = [] if finding.heat.reason in IN_TRAINING else within  # whoever uses its class starts a training
    named = (owner, *_method(function, owner, within))
    return next((each for each in named if not function.file.project.speaks_of(each)), "")


def _method(function: Function, owner: str, within: list[str]) -> list[str]:
    """The method that a wait stands in, as `Class.method`, where nothing calls it but who names it."""
    cls = next((each for each in function.file.classes if each.name == owner), None)
    if cls is None or not within or cls not in function.file.tree.body:
        return []
    node = next((n for n in cls.body if isinstance(n, ast.FunctionDef) and n.name == within[0]), None)
    if node is None or node.decorator_list or node.name in _CALLED or (node.name[:2] == node.name[-2:] == "__"):
        return []
    return [f"{owner}.{node.name}"] if all(name_of(base) in _PLAIN for base in cls.bases) else []


def called_aside(finding: Finding, site: Site, function: Function) -> str:
    """Its function, where a step calls that although its own name says that it runs seldom: `beam_decode`."""
    aside = finding.heat.reason is Reason.CALLED and not _own_name(finding.function).hot
    return finding.function if aside else ""


def read_aside(finding: Finding, site: Site, function: Function) -> str:
    """Its function, where that reads numbers and nothing says that a step calls it: it decodes, draws a picture, analyses."""
    if finding.heat.reason is not Reason.MAYBE or not _asks_for_numbers(finding, site):
        return ""
    alone = not function.file.project.has_others()  # then nothing can say who calls it
    return "" if alone or _is_called_in_steps(finding.heat) else finding.function


def printed(finding: Finding, site: Site, function: Function) -> bool:
    """Whether a number is read for a line on the screen alone, in each call of a network."""
    still_read = finding.fix is not None and finding.fix.stays is not Stays.NONE
    if finding.heat.reason is not Reason.NAMED or not still_read or not _asks_for_numbers(finding, site):
        return False
    match function.statement(site.node):
        case ast.Expr(value=ast.Call(func=func)):
            return name_of(func) == "print"
    return False


def _asks_for_numbers(finding: Finding, site: Site) -> bool:
    """Whether it reads numbers; nobody asks the device for what is drawn."""
    return site.op in VALUES and finding.fix is not None and not finding.fix.redraws


def _own_name(function: str) -> Heat:
    """What a function is by its own name, and that of its class."""
    owner, _, name = function.rpartition(".")
    return by_name(name, owner.rpartition(".")[2], ())


def _is_called_in_steps(heat: Heat) -> bool:
    """Whether the function that calls it is known to run in steps, by its name."""
    said = _own_name(heat.caller) if heat.caller else None
    return said is not None and said.hot and said.reason not in conventions.PARTLY
