"""Waits of which nobody gains by reading more than a line, as no fix can be made of them."""

from __future__ import annotations

import ast
import re

from syncscope.model.fact import Site
from syncscope.model.finding import Finding
from syncscope.model.heat import Reason
from syncscope.model.ops import VALUES, Family, Op
from syncscope.project.syntax import statements, walk
from syncscope.rules import Function

NUMBERS = {"int", "float", "bool", "ndarray"}  # in what a function says that it gives, where nothing else is but these:
HELD = {*NUMBERS, *"str None list tuple dict List Tuple Dict Optional Sequence np numpy".split()}
SAMPLES = re.compile(r"(^|_)(sample|sampling|decode|decoding|search|select_actions?|get_actions?|simulate)(_|$)")
_SIZED = frozenset(
    """range arange zeros ones empty full eye rand randn randperm linspace new_zeros new_ones new_full new_empty expand repeat
    view reshape narrow split unflatten tile pad""".split()
)  # calls that take sizes
_SIZE = re.compile(r"^(num_\w+|\w*size|\w*_len|\w*length|minlength|n)$")  # arguments that are one
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SHAPED = (ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List, ast.IfExp)


def is_idle(finding: Finding, site: Site, function: Function) -> bool:
    """Whether its function is not known to run in every step, the value is needed where it is, or asked for, and there is
    nothing to write instead. Any other number that is read can be read later, or by somebody else; and where a step comes by
    many times, that is the first thing to know.
    """
    if finding.fix is not None or finding.advice is not None or finding.heat.reason is Reason.OWN:
        return False
    if site.op in VALUES and is_brought_along(site, function):
        return True
    if finding.repeats or finding.heat.reason not in (Reason.MAYBE, Reason.CALLED):
        return False
    needed = site.op in (Op.CONDITION, Op.LINALG_CHECK) or site.op.family in (Family.SHAPE, Family.COPY)
    return needed or (site.op in VALUES and (asked_for(site) or is_size(site, function)))


def asked_for(site: Site) -> bool:
    """Whether a number is what a function is to give, or is drawn or decoded by it, for somebody who runs on the host."""
    function = site.function
    if function is None:
        return False
    gives = set(re.findall(r"\w+", ast.unparse(function.returns))) if function.returns is not None else set()
    if SAMPLES.search(function.name) or (gives & NUMBERS and gives <= HELD):
        return True
    given = (s.value for s in statements(function) if isinstance(s, ast.Return) and s.value is not None)
    around = (value for value in given if any(node is site.node for node in walk(value)))
    return any(not site.fact_of(value).is_tensor for value in around)


def is_size(site: Site, function: Function) -> bool:
    """Whether a number that is read says nothing but how large something is: `x[:, : int(lengths.max())]`."""
    if function.loop(site.node) is not None or any(
        isinstance(each, _COMPREHENSIONS) for each in function.around(site.node)
    ):
        return False  # one by one: all of them could be read at once
    outer = _outermost(site.node, function)
    match function.parent(outer):
        case ast.Assign(targets=[ast.Name(id=name)]) as assign:
            if function.shared(name):
                return False
            uses = [use for use in function.reads(name) if use.lineno > assign.lineno]
            return bool(uses) and all(_sizes(_outermost(use, function), function) for use in uses)
    return _sizes(outer, function)


def _outermost(node: ast.AST, function: Function) -> ast.AST:
    """What a number is calculated into: `max(int(x.max()) + 1, 2)`."""
    while (above := function.parent(node)) is not None:
        converts = isinstance(above, ast.Call) and isinstance(above.func, ast.Name) and node in above.args
        if not isinstance(above, _SHAPED) and not (converts and above.func.id in ("int", "max", "min")):  # type: ignore[attr-defined]
            break
        node = above
    return node


def _sizes(node: ast.AST, function: Function) -> bool:
    """Whether an expression stands where a size is taken."""
    match above := function.parent(node):
        case ast.Slice():
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return node is not above.func and name in _SIZED
        case ast.keyword(arg=str(name)):
            return bool(_SIZE.match(name))
    return False


def is_brought_along(site: Site, function: Function) -> bool:
    """Whether a number is read only where an object has none: `n = getattr(graph, "n", None)`, `if n is None: n = ...`."""
    node: ast.AST | None = site.node
    while (inner := node) is not None and inner is not function.scope:
        node = function.parent(inner)
        if not isinstance(node, (ast.If, ast.IfExp)):
            continue
        body = node.body if isinstance(node.body, list) else [node.body]
        match node.test:
            case ast.Compare(left=ast.Name() as name, ops=[ast.Is()], comparators=[ast.Constant(value=None)]) if (
                inner in body and _may_be_missing(name, function)
            ):
                return True
    return False


def _may_be_missing(name: ast.Name, function: Function) -> bool:
    """Whether a name holds an attribute that its object may lack."""
    match function.value(name):
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(), ast.Constant(value=None)]):
            return True
    return False
