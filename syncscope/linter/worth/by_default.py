"""What runs only where somebody asks for it, and nothing in the project does: an arm of a test that says no as long as
parameters are what they are anyway.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from syncscope.linter.worth.defaults import says_no
from syncscope.linter.worth.ways import left_before
from syncscope.model.fact import Site
from syncscope.model.finding import Finding
from syncscope.project.syntax import each_of, name_of, statements, walk
from syncscope.rules import Function

_PAIRS = ((ast.Eq, ast.NotEq), (ast.Lt, ast.GtE), (ast.LtE, ast.Gt), (ast.Is, ast.IsNot), (ast.In, ast.NotIn))
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}
_ROWS = re.compile(
    r"^(n|num|count|length|bs|bsz|batch_?size|(n|num)_(samples|rows|points|boxes|nodes|edges|items|frames|tokens))$"
)
"""What people call how many there are: of a size that is chosen, of classes, layers or steps, one is nothing rare."""
_OF_PYTHON = frozenset(("float", "int", "bool", "list", "tuple", "ndarray"))


def converted(finding: Finding, site: Site, function: Function) -> str:
    """The test whether what an object keeps is still a number, under which it gets another value: `type(self.eps) is float`."""
    inner: ast.AST = site.node
    for outer in function.around(inner):
        match outer:
            case (
                ast.If(test=ast.Call(func=ast.Name(id="isinstance"), args=[ast.Attribute() as kept, kinds]))
                | ast.If(
                    test=ast.Compare(
                        left=ast.Call(func=ast.Name(id="type"), args=[ast.Attribute() as kept]),
                        ops=[ast.Is() | ast.Eq() | ast.In()],
                        comparators=[kinds],
                    )
                )
            ) if inner in outer.body:
                given = (t for each in outer.body if isinstance(each, ast.Assign) for t in each.targets)
                of_python = {name_of(each) for each in each_of(kinds)} <= _OF_PYTHON
                if of_python and ast.unparse(kept) in map(ast.unparse, given):
                    return ast.unparse(outer.test)
        inner = outer
    return ""


def of_few_rows(finding: Finding, site: Site, function: Function) -> str:
    """What holds only where a batch has one row or none, and holds there."""
    for test, needed, refused in _tests(function, site.node):
        if not refused and _asks_for_little(test, needed, function) and not _counts_passes(test, function, site.node):
            return _told(test, needed)
    return ""


def not_asked_for(finding: Finding, site: Site, function: Function) -> str:
    """What must hold there, and does not as long as nobody gives a parameter anything else than it has anyway."""
    tests = _tests(function, site.node)
    return next((_told(test, needed) for test, needed, _ in tests if says_no(test, needed, function)), "")


def for_tokens(finding: Finding, site: Site, function: Function) -> str:
    """The test under which keys and values of tokens are kept, for those that come one after another: `use_cache`."""
    asked = (test for test, needed, _ in _tests(function, site.node) if needed)
    return next((name_of(test) for test in asked if name_of(test) == "use_cache"), "")


def of_nothing(finding: Finding, site: Site, function: Function) -> str:
    """What must hold for a function to give a number of its own in place of what it computes: `if self.kept is None: return
    torch.tensor(0.0, device=device)`."""
    if not _gives_a_number(site, function):
        return ""
    test = next(((test, needed) for test, needed, _ in _tests(function, site.node)), None)
    return _told(*test) if test is not None else ""


def in_place_of_loss(finding: Finding, site: Site, function: Function) -> bool:
    """Whether a step gives a number of its own, which asks for a gradient that nothing has: it goes through batches, and trains
    nothing."""
    match site.node:
        case ast.Call(keywords=keywords) if _gives_a_number(site, function):
            return any(each.arg == "requires_grad" and _is_true(each.value) for each in keywords)
    return False


def _gives_a_number(site: Site, function: Function) -> bool:
    """Whether a function gives back nothing but a number that is written there, as a tensor."""
    match statement := function.statement(site.node):
        case ast.Return(value=ast.Call(args=[given, *_])):
            return statement.value is site.node and _is_number(given)
    return False


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _tests(function: Function, node: ast.AST) -> Iterator[tuple[ast.expr, bool, bool]]:
    """The tests that have to hold, or not to hold, for a node to run; and whether all else is refused, with an error: then
    what the test asks for is what everybody gives.
    """
    inner = node
    for outer in function.around(node):
        match outer:
            case ast.If(test=test, body=body, orelse=orelse) if inner is not test:
                yield test, inner in body, _raises(orelse if inner in body else body)
            case ast.IfExp(test=test, body=body) if inner is not test:
                yield test, inner is body, False
            case ast.BoolOp(op=op, values=values) if inner in values:
                yield from ((each, isinstance(op, ast.And), False) for each in values[: values.index(inner)])
        if isinstance(inner, ast.stmt):
            yield from ((each.test, False, _raises(each.body)) for each in left_before(function, inner))
        inner = outer


def _asks_for_little(test: ast.expr, needed: bool, function: Function) -> bool:
    """Whether a test holds where a batch has one row or none: `x.shape[0] == 1`, `len(boxes) == 0`, `not x.numel()`."""
    match test:
        case ast.BoolOp(op=op, values=values):
            return isinstance(op, ast.And) is needed and any(_asks_for_little(one, needed, function) for one in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _asks_for_little(operand, not needed, function)
        case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=int(number))]) if _is_number_of_rows(
            left, function
        ):
            few = {ast.Eq: 1, ast.LtE: 1, ast.Lt: 2} if needed else {ast.NotEq: 1, ast.Gt: 1, ast.GtE: 2}
            return number <= few.get(type(op), -1)
    return not needed and _is_number_of_rows(test, function)


def _counts_passes(test: ast.expr, function: Function, node: ast.AST) -> bool:
    """Whether a test asks which pass it is of a loop around a node: one of them is the first in every step."""
    asked = {each.id for each in walk(test) if isinstance(each, ast.Name)}
    loops = (each.target for each in function.around(node) if isinstance(each, ast.For | ast.comprehension))
    return any(isinstance(each, ast.Name) and each.id in asked for target in loops for each in walk(target))


def _is_number_of_rows(node: ast.expr, function: Function) -> bool:
    match node:
        case ast.Name(id=name):
            return _ROWS.match(name) is not None or _counts_rows(name, function)
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return _ROWS.match(name) is not None
    return _counts(node)


def _counts_rows(name: str, function: Function) -> bool:
    """Whether all that a name is bound to in its function says how many rows there are: `B = x.size(0)`, `n, d = x.shape`."""
    given = sum(isinstance(each, ast.Assign) and _binds(each, name) for each in statements(function.scope))
    bound = sum(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in walk(function.scope))
    return 0 < bound == given


def _binds(statement: ast.Assign, name: str) -> bool:
    """Whether a statement binds a name, alone or as the first size, to a number of rows."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=bound)], value=value):
            return bound == name and _counts(value)
        case ast.Assign(
            targets=[ast.Tuple(elts=[ast.Name(id=bound), *_])],
            value=ast.Attribute(attr="shape") | ast.Call(func=ast.Attribute(attr="size"), args=[]),
        ):
            return bound == name
    return False


def _counts(node: ast.expr) -> bool:
    """Whether an expression says how many rows something has."""
    match node:
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.Constant(value=0)):
            return True
        case ast.Call(func=ast.Name(id="len"), args=[_]) | ast.Call(func=ast.Attribute(attr="numel"), args=[]):
            return True
        case ast.Call(func=ast.Attribute(attr="size"), args=[ast.Constant(value=0)]):
            return True
    return False


def _raises(block: list[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], ast.Raise)


def _told(test: ast.expr, needed: bool) -> str:
    """What holds where a test does, or does not: `x.shape[0] <= 1` where `x.shape[0] > 1` must not."""
    match test:
        case _ if needed:
            return ast.unparse(test)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ast.unparse(operand)
        case ast.Compare(left=left, ops=[op], comparators=compared):
            return ast.unparse(ast.Compare(left, [_OPPOSITE[type(op)]()], compared))
    return ast.unparse(ast.UnaryOp(ast.Not(), test))


JUDGES = (converted, of_few_rows, of_nothing, in_place_of_loss, for_tokens, not_asked_for)
