"""Which waits have just ended where another begins: then nothing is in flight, and the second costs next to nothing.

All that a function evaluates is put in order, and gone through backwards from a wait: up to a call of a network or of a large
product, which keep a device busy, or of code that cannot be seen, or out of the loop around it. A function of the same file is
gone through likewise where it is called.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Generator, Iterator
from typing import NamedTuple

from syncscope.codemod.callees import callee
from syncscope.codemod.enclosure import LOOPS, SCOPES
from syncscope.codemod.function import COMPREHENSIONS, Function
from syncscope.codemod.view import View
from syncscope.model.fact import Site, Value
from syncscope.model.ops import Family
from syncscope.tensors.syntax import children
from syncscope.tensors.torch.signatures import ARRAY_LIKE, TORCH_ONLY

FARTHEST = 40  # calls between: what more of them launch does not end in no time
DEEPEST = 3  # functions that are gone into, one in the other
DRAINS = (Family.READ, Family.SHAPE, Family.COPY)  # a copy to the device is waited for behind all that was asked before
ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
BUSY = frozenset(
    """matmul mm bmm einsum tensordot addmm baddbmm linear bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d
    conv_transpose3d cdist scaled_dot_product_attention multi_head_attention_forward backward grad svd eigh inv inverse cholesky
    solve lstsq qr pinv grid_sample interpolate sort argsort topk unfold fold""".split()
)
"""Operations of torch that may take long, by their last word."""
LIGHT = TORCH_ONLY | ARRAY_LIKE | set("append extend items keys values pop insert format startswith".split())
"""Methods that launch next to nothing, whatever they are called on: those of tensors and of containers."""
KNOWN = (Value.TENSOR, Value.SCALAR, Value.SEQUENCE, Value.ARRAY)


class Within(NamedTuple):
    """An arm or a loop that something stands in: its node, its block, whether it loops, ends by leaving, ends by raising."""

    node: ast.AST
    arm: int
    loops: bool = False
    leaves: bool = False
    raises: bool = False


Step = tuple[ast.AST, tuple[Within, ...]]  # what is evaluated, and what it stands in


class _Left:
    """How many more calls may lie between."""

    def __init__(self) -> None:
        self.calls = FARTHEST

    def none(self) -> bool:
        """Whether that was one too many."""
        self.calls -= 1
        return self.calls <= 0


def drained_by(view: View, site: Site) -> Iterator[Site]:
    """The waits after which nothing long was asked for before this one, from the nearest on."""
    function = view.function(site)
    order, places = _order(function)
    at = places.get(id(site.node))
    if at is not None:
        yield from _backwards(view, function, order[:at], order[at][1], _Left(), 0)


def _backwards(
    view: View, function: Function, order: list[Step], around: tuple[Within, ...], left: _Left, depth: int
) -> Generator[Site, None, bool]:
    """The waits among these steps that are sure to have been, from the last on; what it returns is whether all of it is short.

    Of a called function, depth 1 and more, any arm may have run that does not raise.
    """
    sites = function.once("sites by node", function.scope, lambda: {id(s.node): s for s in function.sites})
    loops = [each for each in around if each.loops]
    for node, within in reversed(order):
        if any(each not in within for each in loops):
            return False
        others = [each for each in within if each not in around]
        if any(each.raises if depth else each.leaves for each in others):
            continue
        if left.none():
            return False
        sure = all(each.loops for each in others) and not (depth and _left_before(function, node))
        if _keeps_busy(function, node):
            called = callee(view, function, node) if isinstance(node, ast.Call) and depth < DEEPEST else None
            if called is None:
                return False
            inside = _backwards(view, called, _order(called)[0], (), left, depth + 1)
            if not ((yield from inside) if sure else _short(inside)):
                return False
        before = sites.get(id(node))
        if before is not None and sure and _drains(function, before):
            yield before
    return True


def _drains(function: Function, site: Site) -> bool:
    """Whether nothing is in flight after a wait; nothing is copied of what has no elements, or has been moved for good."""
    if site.op.family is not Family.COPY:
        return site.op.family in DRAINS
    copied = function.op(site.node)
    return site.hot and (copied is None or not any(_empty(function, each) for each in (copied.base, *copied.args[:1])))


def _empty(function: Function, node: ast.expr) -> bool:
    """Whether code makes nothing: `[]`, `torch.LongTensor()`, `torch.empty(0)`."""
    if not isinstance(node, ast.Call):
        return isinstance(node, (ast.List, ast.Tuple)) and not node.elts
    name = function.dotted(node.func) or ""
    given = (*node.args, *node.keywords)
    return name.endswith(("Tensor", ".empty")) and all(isinstance(n, ast.Constant) and n.value == 0 for n in given)


def _short(steps: Generator[Site, None, bool]) -> bool:
    """Whether all of it is short, whatever waits there."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return bool(end.value)


def _left_before(function: Function, node: ast.AST) -> bool:
    """Whether the function may have come back before it gets here."""
    line = getattr(node, "lineno", 0)
    return any(each.lineno < line and each is not function.statement(node) for each in function.every(ast.Return))


def _keeps_busy(function: Function, node: ast.AST) -> bool:
    """Whether this may keep the device busy for longer than it takes to ask it something."""
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
    name = function.dotted(node.func)
    if name is not None:
        known = name.startswith(("torch.", "math.", "logging.", "warnings.")) or hasattr(builtins, name)
        return not known or name.rpartition(".")[2] in BUSY
    if not isinstance(node.func, ast.Attribute):
        return True
    return node.func.attr in BUSY or not (
        node.func.attr in LIGHT or function.fact(node.func.value).kind in KNOWN or _of_value(function, node.func.value)
    )


def _of_value(function: Function, node: ast.expr) -> bool:
    """Whether a method is of what was just computed, `(x > 0).sum()`: no network stands there."""
    return isinstance(node, (ast.BinOp, ast.Compare, ast.UnaryOp)) or function.op(node) is not None


def _order(function: Function) -> tuple[list[Step], dict[int, int]]:
    return function.once("evaluated", function.scope, lambda: _in_order(function))


def _in_order(function: Function) -> tuple[list[Step], dict[int, int]]:
    scope = function.scope
    wanted = {id(site.node) for site in function.sites}
    body: list[ast.stmt] = getattr(scope, "body", []) if not isinstance(scope, ast.Lambda) else []
    every: list[Step] = []
    _block(body, (), every)
    order = [step for step in every if isinstance(step[0], (ast.Call, ast.BinOp)) or id(step[0]) in wanted]
    return order, {id(node): at for at, (node, _) in enumerate(order)}


def _block(body: list[ast.stmt], within: tuple[Within, ...], order: list[Step]) -> None:
    for statement in body:
        _statement(statement, within, order)


def _arm(node: ast.AST, number: int, body: list[ast.stmt], within: tuple[Within, ...], order: list[Step]) -> None:
    leaves = bool(body) and isinstance(body[-1], ENDS)
    raises = leaves and isinstance(body[-1], ast.Raise)
    _block(body, (*within, Within(node, number, leaves=leaves, raises=raises)), order)


def _statement(node: ast.stmt, within: tuple[Within, ...], order: list[Step]) -> None:
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
    else:
        for child in children(node):
            _expression(child, within, order)


def _expression(node: ast.AST, within: tuple[Within, ...], order: list[Step]) -> None:
    """Add what an expression evaluates, in order, itself last."""
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, ast.IfExp):
        _expression(node.test, within, order)
        for number, part in enumerate((node.body, node.orelse)):
            _expression(part, (*within, Within(node, number)), order)
    elif isinstance(node, ast.BoolOp):
        inside = within
        for number, part in enumerate(node.values):
            _expression(part, inside, order)
            inside = (*inside, Within(node, number))
    elif isinstance(node, COMPREHENSIONS):
        inside = (*within, Within(node, 0, loops=True))
        for number, generator in enumerate(node.generators):
            _expression(generator.iter, inside if number else within, order)
            for test in generator.ifs:
                _expression(test, inside, order)
        parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        for part in parts:
            _expression(part, inside, order)
    else:
        for child in children(node):
            _expression(child, within, order)
    order.append((node, within))
