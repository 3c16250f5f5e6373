"""Which waits have just ended where another begins, or begin where it has just ended: one of two costs next to nothing.

What a function evaluates is gone through from a wait: backwards up to a large product, which keeps the device busy, in both
directions up to a network, or other code that cannot be seen, which keeps the host busy as well, and up to the loop around.
A function of the project is gone through likewise where it is called.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Generator, Iterable, Iterator
from itertools import takewhile

from syncscope.codemod.callees import callee
from syncscope.codemod.evaluated import LEAVES, Step, Within, elsewhere, evaluated
from syncscope.codemod.function import Function
from syncscope.codemod.view import View
from syncscope.model.fact import Site, Value
from syncscope.model.ops import Family, Op
from syncscope.tensors.libraries.logging import TELLING
from syncscope.tensors.torch.signatures import ARRAY_LIKE, TORCH_ONLY

FARTHEST = 40  # calls between: what more of them launch does not end in no time
DEEPEST = 3  # functions that are gone into, one in the other
DRAINS = (Family.READ, Family.SHAPE, Family.COPY)  # a copy to the device is waited for behind all that was asked before
BUSY = frozenset(
    """matmul mm bmm einsum tensordot addmm baddbmm linear bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d
    conv_transpose3d cdist scaled_dot_product_attention multi_head_attention_forward backward grad svd eigh inv inverse cholesky
    solve lstsq qr pinv grid_sample interpolate sort argsort topk unfold fold all_reduce all_gather all_gather_into_tensor
    reduce_scatter reduce_scatter_tensor all_to_all all_to_all_single broadcast""".split()
)
"""Operations of torch that may take long, by their last word; those of several ranks wait for the slowest."""
MANY = frozenset(("backward", "grad"))  # of these, what the host takes long to ask for
LIGHT = (
    TORCH_ONLY
    | ARRAY_LIKE
    | TELLING
    | set("log log_dict append extend items keys values pop insert format startswith".split())
)
"""Methods that launch next to nothing, whatever they are called on: those of tensors, of containers and of loggers."""
QUICK = ("torch.", "math.", "time.", "logging.", "warnings.", "wandb.", "mlflow.")
SAID = re.compile(r"get_\w*(?:_group|_rank|_world_size)")
"""What says in which group of ranks, and where in it, this process is: that is looked up on the host."""
# which ask nothing of the device, but may take long themselves
ON_HOST = "numpy.", "scipy.", "textdistance.", "Levenshtein.", "editdistance.", "jiwer."
KNOWN = (Value.TENSOR, Value.SCALAR, Value.SEQUENCE, Value.ARRAY)


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
    order, places = evaluated(function)
    at = places.get(id(site.node))
    if at is None:
        return
    around, left = order[at][1], _Left()
    earlier = takewhile(lambda each: each is not site, function.sites)
    # `x.narrow(0, start, length)` reads two numbers
    yield from (each for each in earlier if each.node is site.node and _drains(function, each))
    yield from _backwards(view, function, map(order.__getitem__, range(at - 1, -1, -1)), around, left, 0)
    outermost = next((each for each in around if each.loops), None)
    if outermost is None or not _only_reads(function, order, outermost):
        return
    first = next(number for number, (_, within) in enumerate(order) if outermost in within)
    outside = around[: around.index(outermost)]
    yield from _backwards(view, function, map(order.__getitem__, range(first - 1, -1, -1)), outside, left, 0)


def followed_by(view: View, site: Site) -> Iterator[Site]:
    """The waits before which nothing long is asked for after this one, from the nearest on."""
    function = view.function(site)
    order, places = evaluated(function)
    at = places.get(id(site.node))
    if at is not None:
        after = map(order.__getitem__, range(at + 1, len(order)))
        yield from _forwards(view, function, after, order[at][1], _Left(), 0)


def _backwards(
    view: View, function: Function, order: Iterable[Step], around: tuple[Within, ...], left: _Left, depth: int
) -> Generator[Site, None, bool]:
    """The waits among these steps, the last first, that are sure to have been; what it returns is whether all of it is short.

    Of a called function, depth 1 and more, any arm may have run that does not raise.
    """
    sites = _by_node(function)
    loops = [each for each in around if each.loops]
    for node, within in order:
        if any(each not in within for each in loops):
            return False
        others = [each for each in within if each not in around]
        away = any(each.raises if depth else each.leaves for each in others)
        if away or isinstance(node, LEAVES) or elsewhere(around, within):
            continue
        if left.none():
            return False
        sure = all(each.loops or each.asks_type for each in others) and not (depth and _left_before(function, node))
        before = sites.get(id(node))
        if before is not None and sure and _drains(function, before):
            yield before
        if _keeps_busy(function, node):
            called = _gone_into(view, function, node, depth)
            if called is None:
                return False
            inside = _backwards(view, called, reversed(evaluated(called)[0]), (), left, depth + 1)
            if not ((yield from inside) if sure else _short(inside)):
                return False
    return True


def _forwards(
    view: View, function: Function, order: Iterable[Step], around: tuple[Within, ...], left: _Left, depth: int
) -> Generator[Site, None, bool]:
    """The waits among these steps that are sure to come, from the first on; what it returns is whether all of it is short."""
    sites = _by_node(function)
    loops = [each for each in around if each.loops]
    gone = False
    for node, within in order:
        if any(each not in within for each in loops):
            return False
        others = [each for each in within if each not in around]
        if any(each.raises or each.handles for each in others) or elsewhere(around, within):
            continue
        if isinstance(node, LEAVES):
            if not depth:
                return False
            gone = True
            continue
        if left.none():
            return False
        sure = all(each.loops for each in others) and not gone
        after = sites.get(id(node))
        if after is not None and sure and _drains(function, after):
            yield after
        # The host could have gone on so far: what the device takes for it is the same.
        if _keeps_busy(function, node, MANY):
            called = _gone_into(view, function, node, depth)
            if called is None:
                return False
            inside = _forwards(view, called, evaluated(called)[0], (), left, depth + 1)
            if not ((yield from inside) if sure else _short(inside)):
                return False
    return True


def _only_reads(function: Function, order: Iterable[Step], loop: Within) -> bool:
    """Whether the passes of a loop ask the device for nothing but what is there: `for v in metrics.values(): add(v.item())`."""
    inside = [node for node, within in order if loop in within]
    computed = any(isinstance(node, ast.expr) and function.fact(node).is_tensor for node in inside)
    return not (computed or any(_keeps_busy(function, node) for node in inside))


def _by_node(function: Function) -> dict[int, Site]:
    return function.once("sites by node", function.scope, lambda: {id(s.node): s for s in function.sites})


def _gone_into(view: View, function: Function, node: ast.AST, depth: int) -> Function | None:
    """The function that a call runs, where it is plain to see and not too far."""
    return callee(view, function, node) if isinstance(node, ast.Call) and depth < DEEPEST else None


def _drains(function: Function, site: Site) -> bool:
    """Whether nothing is in flight after a wait; nothing is copied of what has no elements, or has been moved for good.

    Of another file only what reads: of the callers there it is not known what they make a size of, and a copy is soon mended.
    """
    if function.elsewhere and (site.op.family is Family.COPY or site.op is Op.SIZE):
        return False
    if site.op.family is not Family.COPY:
        return site.op.family in DRAINS
    copied = function.op(site.node)
    return site.whole and (
        copied is None or not any(_empty(function, each) for each in (copied.base, *copied.args[:1]))
    )


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


def _keeps_busy(function: Function, node: ast.AST, long: frozenset[str] = BUSY) -> bool:
    """Whether this may keep the device busy for longer than it takes to ask it something, as one of the `long` does."""
    if not isinstance(node, ast.Call):
        return long is BUSY and isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
    name = function.dotted(node.func)
    if name is not None and SAID.fullmatch(name.rpartition(".")[2]):
        return False
    if name is not None:
        known = name.startswith(QUICK) or hasattr(builtins, name)
        if name.startswith(ON_HOST):
            known = long is BUSY or all(function.fact(each).kind is Value.SCALAR for each in node.args)
        return not known or name.rpartition(".")[2] in long
    if not isinstance(node.func, ast.Attribute):
        return True
    return node.func.attr in long or not (
        node.func.attr in LIGHT or function.fact(node.func.value).kind in KNOWN or _of_value(function, node.func.value)
    )


def _of_value(function: Function, node: ast.expr) -> bool:
    """Whether a method is of what was just computed, `(x > 0).sum()`: no network stands there."""
    return isinstance(node, (ast.BinOp, ast.Compare, ast.UnaryOp)) or function.op(node) is not None
