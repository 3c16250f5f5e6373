"""All that a function evaluates, in order, each with the arms and loops that it stands in."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import NamedTuple

from syncscope.codemod.enclosure import LOOPS, SCOPES
from syncscope.codemod.function import Function
from syncscope.codemod.names_and_calls import COMPREHENSIONS
from syncscope.project.syntax import children, name_of

LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
PARTED = frozenset((ast.Lambda, ast.IfExp, ast.BoolOp, *COMPREHENSIONS))  # not all of it runs, or not once
KEPT = frozenset((ast.Call, ast.BinOp, *LEAVES))
ENDS = frozenset((ast.Name, ast.Constant))  # half of all nodes, with none below them


class Within(NamedTuple):
    """An arm or a loop that something stands in: its node, its block, whether it loops, ends by leaving, ends by raising, and
    whether it is gone into where something is a tensor, `if isinstance(loss, torch.Tensor)`, as what is read most often is."""

    node: ast.AST
    arm: int
    loops: bool = False
    leaves: bool = False
    raises: bool = False
    asks_type: bool = False

    @property
    def handles(self) -> bool:
        """Whether it only runs after an exception."""
        return isinstance(self.node, (ast.Try, ast.TryStar))


Step = tuple[ast.AST, tuple[Within, ...]]  # what is evaluated, and what it stands in


class _Order(list[Step]):
    """The steps so far: of what is `KEPT`, and of the nodes whose `id` is wanted."""

    def __init__(self, wanted: Collection[int]) -> None:
        super().__init__()
        self.wanted = wanted

    def add(self, node: ast.AST, within: tuple[Within, ...]) -> None:
        """Note a node, if it counts."""
        if node.__class__ in KEPT or id(node) in self.wanted:
            self.append((node, within))


def elsewhere(around: tuple[Within, ...], within: tuple[Within, ...]) -> bool:
    """Whether one stands in an arm that is not taken where the other runs."""
    parted = next(((one, other) for one, other in zip(around, within, strict=False) if one != other), None)
    return parted is not None and parted[0].node is parted[1].node


def evaluated(function: Function) -> tuple[list[Step], dict[int, int]]:
    """What a function calls, where it waits and where it leaves, in order; and by the `id` of a node, its place there."""
    return function.once("evaluated", function.scope, lambda: _in_order(function))


def _in_order(function: Function) -> tuple[list[Step], dict[int, int]]:
    scope = function.scope
    wanted = {id(site.node) for site in function.sites}
    body: list[ast.stmt] = getattr(scope, "body", []) if not isinstance(scope, ast.Lambda) else []
    order = _Order(wanted)
    _block(body, (), order)
    return order, {id(node): at for at, (node, _) in enumerate(order)}


def _block(body: list[ast.stmt], within: tuple[Within, ...], order: _Order) -> None:
    for statement in body:
        _statement(statement, within, order)


def _arm(node: ast.AST, number: int, body: list[ast.stmt], within: tuple[Within, ...], order: _Order) -> None:
    leaves = bool(body) and isinstance(body[-1], LEAVES)
    raises = leaves and isinstance(body[-1], ast.Raise)
    typed = not number and isinstance(node, ast.If) and _asks_for_tensor(node.test)
    _block(body, (*within, Within(node, number, leaves=leaves, raises=raises, asks_type=typed)), order)


def _is_none(test: ast.expr) -> bool:
    """`x is None`, `x is not None`: what is asked for its value behind it is there, most often."""
    match test:
        case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return True
    return False


def _asks_for_tensor(test: ast.expr) -> bool:
    """`isinstance(x, torch.Tensor)`, `torch.is_tensor(x)`, `hasattr(x, "item")`."""
    match test:
        case ast.Call(func=func, args=[_, ast.Name(id="Tensor") | ast.Attribute(attr="Tensor")]):
            return name_of(func) == "isinstance"
        case ast.Call(func=func, args=[_, ast.Constant(value="item")]):
            return name_of(func) == "hasattr"
        case ast.Call(func=func, args=[_]):
            return name_of(func) == "is_tensor"
    return False


def _statement(node: ast.stmt, within: tuple[Within, ...], order: _Order) -> None:
    """Add what a statement evaluates, in order."""
    if isinstance(node, SCOPES):
        return
    if isinstance(node, ast.If):
        _expression(node.test, within, order)
        _arm(node, 0, node.body, within, order)
        _arm(node, 1, node.orelse, within, order)
    elif isinstance(node, LOOPS):
        inside = (*within, Within(node, 0, loops=True))
        if isinstance(node, ast.While):
            _expression(node.test, inside, order)
            inside = inside if isinstance(node.test, ast.Constant) else (*inside, Within(node.test, 0))
        else:
            _expression(node.iter, within, order)
        _block(node.body, inside, order)
        _arm(node, 1, node.orelse, within, order)
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        for item in node.items:
            _expression(item.context_expr, within, order)
        _block(node.body, within, order)
    elif isinstance(node, ast.Try):
        _block([*node.body, *node.orelse], within, order)
        for number, handler in enumerate(node.handlers):
            _arm(node, number, handler.body, within, order)
        _block(node.finalbody, within, order)
    elif isinstance(node, ast.Match):
        _expression(node.subject, within, order)
        for number, case in enumerate(node.cases):
            _arm(node, number, case.body, within, order)
    elif isinstance(node, ast.Assign):
        for each in (node.value, *node.targets):
            _expression(each, within, order)
    elif isinstance(node, ast.Assert):
        _expression(node.test, within, order)
        if node.msg is not None:
            _expression(node.msg, (*within, Within(node, 0, leaves=True, raises=True)), order)
    else:
        for child in children(node):
            _expression(child, within, order)
        if isinstance(node, LEAVES):
            order.add(node, within)


def _expression(node: ast.AST, within: tuple[Within, ...], order: _Order) -> None:
    """Add what an expression evaluates, in order, itself last."""
    if node.__class__ not in PARTED:  # nearly all
        for child in children(node):
            if child.__class__ not in ENDS:
                _expression(child, within, order)
            elif id(child) in order.wanted:
                order.append((child, within))
    elif isinstance(node, ast.Lambda):
        return
    elif isinstance(node, ast.IfExp):
        _expression(node.test, within, order)
        for number, part in enumerate((node.body, node.orelse)):
            _expression(part, (*within, Within(node, number)), order)
    elif isinstance(node, ast.BoolOp):
        inside, typed = within, True
        for number, part in enumerate(node.values):
            _expression(part, inside, order)
            typed = typed and (_is_none(part) or _asks_for_tensor(part))
            inside = (*inside, Within(node, number, asks_type=typed))
    elif isinstance(node, COMPREHENSIONS):
        inside = (*within, Within(node, 0, loops=True))
        for number, generator in enumerate(node.generators):
            _expression(generator.iter, inside if number else within, order)
            for test in generator.ifs:
                _expression(test, inside, order)
        parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        for part in parts:
            _expression(part, inside, order)
    order.add(node, within)
