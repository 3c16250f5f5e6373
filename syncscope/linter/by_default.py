"""What runs only where somebody asks for it, and nothing in the project does: an arm of a test that says no as long as
parameters are what they are anyway.

It may run in every step of others, so it is told; but who looks after the project gains nothing by a change of it.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

from syncscope.codemod.enclosure import BODIES
from syncscope.codemod.evaluated import LEAVES
from syncscope.codemod.names_and_calls import parameters_of
from syncscope.linter.source import DEEPEST
from syncscope.linter.worth import cooled
from syncscope.model.fact import Site
from syncscope.model.finding import Finding
from syncscope.model.heat import Heat, Reason
from syncscope.project.given import OPTION, Parameter
from syncscope.project.syntax import assigned, default_of, each_of, name_of, parents, walk
from syncscope.rules import Function, View

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_NUMBERS = {
    "math.inf": math.inf,
    "torch.inf": math.inf,
    "np.inf": math.inf,
    "numpy.inf": math.inf,
    "float('inf')": math.inf,
}
_OPTIONS = re.compile(r"^(args?|opts?|options|cfg|configs?|params|hparams)$")
"""What people call that which holds the options of a command line: one that a test asks for alone is a flag, off by default."""
_FARTHEST = 4  # assignments that are followed to what was given
_UNKNOWN = object()


def by_default(finding: Finding, site: Site | None, view: View) -> Finding:
    """The finding, told in a line where nothing in the project asks for what it stands in."""
    if site is None or finding.fix is None or not finding.heat.whole or finding.heat.reason is Reason.OWN:
        return finding
    function = view.function(site)
    if function.depth > DEEPEST:
        return finding
    why = hangs_on(function, site.node)
    return finding if why is None else cooled(finding, why)


def hangs_on(function: Function, node: ast.AST) -> Heat | None:
    """What has to be asked for, or to be so once, for a node to run; None where nothing has."""
    if (set_once := _set_once(function, node)) is not None:
        return Reason.CONVERTED(ast.unparse(set_once))
    tests = [*_tests(function, node)]
    for test, needed, refused in tests:
        if not refused and _asks_for_little(test, needed):
            return Reason.RARE(_told(test, needed))
    for test, needed, _ in tests:
        if _says_no(test, needed, function):
            return Reason.UNGIVEN(_told(test, needed))
    return None


def _set_once(function: Function, node: ast.AST) -> ast.expr | None:
    """The test whether what an object keeps is still a number, under which it gets another value: `type(self.eps) is float`."""
    inner = node
    for outer in function.around(node):
        if isinstance(outer, ast.If) and inner in outer.body:
            match outer.test:
                case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Attribute() as kept, kinds]):
                    pass
                case ast.Compare(
                    left=ast.Call(func=ast.Name(id="type"), args=[ast.Attribute() as kept]),
                    ops=[ast.Is() | ast.Eq() | ast.In()],
                    comparators=[kinds],
                ):
                    pass
                case _:
                    inner = outer
                    continue
            of_python = {name_of(each) for each in each_of(kinds)} <= {
                "float",
                "int",
                "bool",
                "list",
                "tuple",
                "ndarray",
            }
            given = (t for each in outer.body if isinstance(each, ast.Assign) for t in each.targets)
            if of_python and ast.unparse(kept) in map(ast.unparse, given):
                return outer.test
        inner = outer
    return None


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
            yield from _left_before(outer, inner)
        inner = outer


def _asks_for_little(test: ast.expr, needed: bool) -> bool:
    """Whether a test holds where a batch has one row or none: `x.shape[0] == 1`, `len(boxes) == 0`, `not x.numel()`."""
    match test:
        case ast.BoolOp(op=op, values=values):
            return isinstance(op, ast.And) is needed and any(_asks_for_little(each, needed) for each in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _asks_for_little(operand, not needed)
        case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=int(number))]) if _is_number_of_rows(
            left
        ):
            few = {ast.Eq: 1, ast.LtE: 1, ast.Lt: 2} if needed else {ast.NotEq: 1, ast.Gt: 1, ast.GtE: 2}
            return number <= few.get(type(op), -1)
    return not needed and _is_number_of_rows(test)


def _is_number_of_rows(node: ast.expr) -> bool:
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


def _left_before(outer: ast.AST, inner: ast.stmt) -> Iterator[tuple[ast.expr, bool, bool]]:
    """The tests before a statement in its block that have to fail for it to be come to."""
    for name in BODIES:
        block = getattr(outer, name, None)
        if isinstance(block, list) and inner in block:
            for each in block[: block.index(inner)]:
                if isinstance(each, ast.If) and not each.orelse and isinstance(each.body[-1], LEAVES):
                    yield each.test, False, _raises(each.body)


def _says_no(test: ast.expr, needed: bool, function: Function) -> bool:
    """Whether a test turns out otherwise than is needed, where all are given what they have anyway, as they are."""
    defaults = _Defaults(function)
    value = defaults.value(test, function.scope if isinstance(function.scope, _Function) else None, 0)
    if value is _UNKNOWN or bool(value) is needed or not defaults.asked:
        return False
    return not any(function.file.project.gives(each.key) for each in dict.fromkeys(defaults.asked))


class _Defaults:
    """What expressions are where parameters are what they are anyway; which were `asked` for is noted."""

    def __init__(self, function: Function) -> None:
        self.asked: list[Parameter] = []
        self._function = function
        self._cls = function.file.class_around(function.scope)
        self._given_anew: set[str] = set()  # names of which it is being asked what they are given

    def value(self, node: ast.expr, scope: _Function | None, depth: int) -> Any:
        """What an expression is there, `_UNKNOWN` where that is not known."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                values = [self.value(each, scope, depth) for each in parts]
                return _UNKNOWN if any(each is _UNKNOWN for each in values) else tuple(values)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                value = self.value(operand, scope, depth)
                return value if value is _UNKNOWN else not value
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                value = self.value(operand, scope, depth)
                return -value if isinstance(value, int | float) else _UNKNOWN
            case ast.BoolOp(op=op, values=parts):
                return self._of_several(parts, isinstance(op, ast.And), scope, depth)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._compared(left, op, right, scope, depth)
            case ast.Name(id=name) if self._function.dotted(node) not in _NUMBERS:
                return self._of_name(name, scope, depth)
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return self._kept(name, depth)
            case ast.Attribute(value=ast.Name(id=options) | ast.Attribute(attr=options), attr=name) if _OPTIONS.match(
                options
            ):
                self.asked.append(Parameter(name, "False", OPTION, -1))
                return False
            case ast.Call(func=ast.Name(id="float" | "int" | "bool" as kind), args=[given], keywords=[]):
                value = self.value(given, scope, depth)
                if isinstance(value, int | float):
                    return {"float": float, "int": int, "bool": bool}[kind](value)
        return _NUMBERS.get(self._function.dotted(node) or ast.unparse(node), _UNKNOWN)

    def _of_several(self, parts: list[ast.expr], every: bool, scope: _Function | None, depth: int) -> Any:
        """What `and` or `or` gives: one part may say it, whatever the others are."""
        values = []
        for part in parts:
            kept = len(self.asked)
            value = self.value(part, scope, depth)
            if value is not _UNKNOWN and bool(value) is not every:
                return value
            if value is _UNKNOWN:
                del self.asked[kept:]
            values.append(value)
        return _UNKNOWN if any(each is _UNKNOWN for each in values) else values[-1]

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr, scope: _Function | None, depth: int) -> Any:
        one, other = self.value(left, scope, depth), self.value(right, scope, depth)
        if one is _UNKNOWN or other is _UNKNOWN:
            return _UNKNOWN
        try:
            return _COMPARED[type(op)](one, other)
        except TypeError:
            return _UNKNOWN

    def _of_name(self, name: str, scope: _Function | None, depth: int) -> Any:
        """What a name holds: a parameter that nothing binds anew, or what it is given once, `norm = float(norm)`."""
        if depth > _FARTHEST or scope is None:
            return _UNKNOWN
        default = None
        if name not in self._given_anew:
            bound = sum(
                isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load) for n in walk(scope)
            )
            once = [
                each for each in scope.body if isinstance(each, ast.Assign) and [*map(name_of, each.targets)] == [name]
            ]
            if bound and not bound == len(once) == 1:
                return _UNKNOWN
            if once:
                self._given_anew.add(name)
                value = self.value(once[0].value, scope, depth + 1)
                self._given_anew.discard(name)
                return value
            if not bound and name not in parameters_of(scope):
                return self._of_name(name, self._around(scope), depth + 1)
        default = default_of(scope, name)
        value = self.value(default, None, depth + 1) if default is not None else _UNKNOWN
        if default is not None and value is not _UNKNOWN:
            self.asked.append(self._parameter(scope, name, default))
        return value

    def _around(self, scope: _Function) -> _Function | None:
        """The function in which another one is written, whose parameters that one has, too."""
        outermost = self._function.file.outermost_around(scope)
        if outermost is None or outermost is scope:
            return None
        around = parents(outermost)
        outer = around[scope]
        while not isinstance(outer, _Function):
            outer = around[outer]
        return outer

    def _kept(self, name: str, depth: int) -> Any:
        """What an object keeps since it was made, and nothing of its class sets again."""
        if self._cls is None or depth > _FARTHEST:
            return _UNKNOWN
        given = assigned(self._cls).get(f"self.{name}", [])
        built = next(
            (each for each in self._cls.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None
        )
        if len(given) != 1 or built is None or not any(given[0] is each for each in walk(built)):
            return _UNKNOWN
        value = self.value(given[0], built, depth + 1)
        if value is not _UNKNOWN and name_of(given[0]) != name:  # else it is looked for as the parameter
            self.asked.append(Parameter(name, repr(value), "", -1))
        return value

    def _parameter(self, node: _Function, name: str, default: ast.expr) -> Parameter:
        args = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
        method = args[:1] in (["self"], ["cls"])
        called = self._cls.name if node.name == "__init__" and self._cls is not None else node.name
        return Parameter(name, ast.unparse(default), called, args.index(name) - method if name in args else -1)
