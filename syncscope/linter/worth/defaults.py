"""What expressions of a function are where all parameters are what they are anyway."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from typing import Any

from syncscope.codemod.names_and_calls import parameters_of
from syncscope.project.given import OPTION, Parameter
from syncscope.project.syntax import assigned, default_of, name_of, parents, walk
from syncscope.rules import Function

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
_NUMBERS = dict.fromkeys(("math.inf", "torch.inf", "np.inf", "numpy.inf", "float('inf')"), math.inf)
_OPTIONS = re.compile(r"^(args?|opts?|options|cfg|configs?|params|hparams)$")
"""What people call that which holds the options of a command line: one that a test asks for alone is a flag, off by default."""
_FARTHEST = 4  # assignments that are followed to what was given
_UNKNOWN = object()


def says_no(test: ast.expr, needed: bool, function: Function) -> bool:
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
