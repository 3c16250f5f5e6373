"""Whether a mask may have no dimension left in ordinary use: it is made of what was reduced over a dimension that may have been
the only one, here, or by who calls this function. `x.sum(0) > 0` of a vector is one element.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from syncscope.codemod.function import Function
from syncscope.project.syntax import walk

REDUCING = frozenset("squeeze any all sum prod mean amax amin argmax argmin select var std norm".split())
KEEPING = frozenset(
    """isclose abs zeros_like ones_like full_like float long bool double half detach clone exp log sqrt square isnan isinf
    isfinite eq ne lt gt le ge logical_and logical_or logical_xor logical_not sigmoid clamp to type_as""".split()
)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEEPEST = 8  # definitions and calls that are followed


def may_be_one_element(function: Function, mask: ast.expr) -> bool:
    """Whether a mask may have no dimension."""
    return bool(_Ranks(function).none(mask, function.scope, ()))


class _Named(NamedTuple):
    """What the functions of a file are called, and who calls them."""

    functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]]
    calls: dict[str, list[tuple[ast.Call, ast.AST]]]  # by name, with the function around


class _Ranks:
    def __init__(self, function: Function) -> None:
        self.function = function

    def none(self, node: ast.expr, scope: ast.AST, path: tuple[tuple[ast.AST, str], ...]) -> bool | None:
        """Whether an expression of a function may have no dimension, None of a number; `path`: the names that are asked for."""
        match node:
            case (
                ast.Constant()
                | ast.Attribute()
                | ast.Call(func=ast.Attribute(attr="size" | "numel") | ast.Name(id="len"))
            ):
                return None
            case ast.Name(id=name):
                step = (scope, name)
                if step in path or len(path) >= DEEPEST:
                    return False
                found = [self.none(value, within, (*path, step)) for value, within in self.given(scope, name)]
                return any(found) if found and found != [None] * len(found) else None if found else False
            case ast.UnaryOp(operand=inner):
                return self.none(inner, scope, path)
            case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
                sides = [each for each in (self.none(side, scope, path) for side in (left, right)) if each is not None]
                return all(sides) if sides else None
            case ast.IfExp(body=body, orelse=other):
                return self.none(body, scope, path) or self.none(other, scope, path)
            case ast.Call(func=ast.Attribute(value=base, attr=word), args=args, keywords=named):
                if (self.function.dotted(node.func) or "").startswith("torch."):
                    base, args = (args[0], args[1:]) if args else (base, args)
                if word in REDUCING:
                    return _takes_the_only(args, named)
                return self.none(base, scope, path) if word in KEEPING else False
        return False

    def given(self, scope: ast.AST, name: str) -> Iterator[tuple[ast.expr, ast.AST]]:
        """What a function gives a name, or is given for it by its callers in the file, each with where that is written."""
        bound = False
        for statement in walk(scope):
            match statement:
                case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                    bound = True
                    yield value, scope
                case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
                    at = next(
                        (n for n, each in enumerate(targets) if isinstance(each, ast.Name) and each.id == name), None
                    )
                    if at is not None:
                        bound = True
                        yield from self.part(value, at, len(targets), scope)
        if not bound and isinstance(scope, FUNCTIONS):
            place = next((n for n, each in enumerate(scope.args.args) if each.arg == name), None)
            for call, around in self.named().calls[scope.name] if place is not None else ():
                by_name = next((k.value for k in call.keywords if k.arg == name), None)
                plain = not any(isinstance(each, ast.Starred) for each in call.args)
                if by_name is not None:
                    yield by_name, around
                elif plain and place is not None and place < len(call.args):
                    yield call.args[place], around

    def part(self, value: ast.expr, at: int, count: int, scope: ast.AST) -> Iterator[tuple[ast.expr, ast.AST]]:
        """One of several values: of a tuple, or of what a function of the file returns."""
        match value:
            case ast.Tuple(elts=elts) if len(elts) == count:
                yield elts[at], scope
            case ast.Call(func=ast.Name(id=called)):
                for each in self.named().functions[called]:
                    for node in walk(each):
                        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
                            yield from self.part(node.value, at, count, each)

    def named(self) -> _Named:
        """The functions of the file, and their calls."""
        return self.function.file.once("functions and their calls", lambda: _named(self.function.file.tree))


def _named(tree: ast.AST) -> _Named:
    found = _Named(defaultdict(list), defaultdict(list))
    for each in ast.walk(tree):
        if isinstance(each, FUNCTIONS):
            found.functions[each.name].append(each)
            for node in walk(each):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    found.calls[node.func.id].append((node, each))
    return found


def _takes_the_only(given: list[ast.expr], named: list[ast.keyword]) -> bool:
    """Whether a reduction takes all dimensions, or one that may be the only one: the first or the last."""
    over = next((k.value for k in named if k.arg in ("dim", "axis")), given[0] if given else None)
    match over:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
            return number == 1
        case ast.Constant(value=int() as number):
            return number == 0
        case ast.Tuple() | ast.List():
            return False
    return True
