"""Totals: what a name starts with before a loop adds to it, `total = 0.0`, `a, b = 0.0, []`, and what adds a number to it."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import NamedTuple

from syncscope.codemod.enclosure import LOOPS
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.devices import is_device
from syncscope.codemod.patterns.numbers import python_number
from syncscope.codemod.patterns.reads import tensor_read, without_item
from syncscope.codemod.proofs import cast, real, taken_for_mask
from syncscope.model.fact import Dtype, Site
from syncscope.model.ops import COPIES
from syncscope.project.syntax import each_of
from syncscope.tensors.torch.signatures import TORCH_ONLY

Loop = ast.For | ast.AsyncFor | ast.While

LOSS = re.compile(r"loss|criterion|entropy|err\b|nll|mse", re.IGNORECASE)


class Addition(NamedTuple):
    """`total += t.item()`, `total = total + t.item()`, with what the number is multiplied with, divided by or raised to."""

    statement: ast.AugAssign | ast.Assign
    total: ast.Name
    template: str  # with {t} for the tensor
    factor: ast.expr | None


class Summed(NamedTuple):
    """What numbers give that are added up: a `whole` one, of a mask that is `counted` if it holds whole numbers, or a float:
    `surely`, or if they are real."""

    whole: bool
    counted: ast.expr | None
    surely: bool


def starting(function: Function, name: str) -> list[tuple[ast.Assign, ast.expr]]:
    """The values that a name is given, alone, in a chain, or beside others, `a, b = 0.0, 0`, and the assignments that do."""
    found = [(s, s.value) for s in assigned(function, name)]
    for bound in function.binds(name):
        side = function.parent(bound)
        assign = function.parent(side) if isinstance(side, ast.Tuple) else None
        values = assign.value if isinstance(assign, ast.Assign) else None
        if isinstance(side, ast.Tuple) and isinstance(values, ast.Tuple) and len(side.elts) == len(values.elts):
            assert isinstance(assign, ast.Assign)
            found.append((assign, values.elts[side.elts.index(bound)]))
    return found


def assigned(function: Function, name: str) -> list[ast.Assign]:
    """The assignments to a name, alone or in a chain `a = b = 0.0`."""
    parents = (function.parent(n) for n in function.binds(name))
    return [p for p in parents if isinstance(p, ast.Assign)]


def seen_half_done(function: Function, name: str, loop: ast.AST) -> bool:
    """Whether code may see what a name holds within a loop: a function that reads it, or what follows an error in the loop."""
    if function.captured(name):
        return True
    around = [loop, *function.around(loop)]
    tried = [n.body[-1].end_lineno or 0 for n in around if isinstance(n, ast.Try) and any(s in around for s in n.body)]
    return any(read.lineno > end for end in tried for read in function.reads(name))


def addition(function: Function, number: ast.AST) -> Addition | None:
    """The statement that adds a number to a total."""
    value, factor, template = number, None, "{t}"
    match outer := function.parent(value):
        case ast.BinOp(op=ast.Mult() | ast.Div() | ast.Pow() as op):
            factor = outer.right if outer.left is value else outer.left
            sign = "/" if isinstance(op, ast.Div) else "**" if isinstance(op, ast.Pow) else "*"
            template = f"{{t}} {sign} {{factor}}"
            if (sign != "*" and factor is outer.left) or a_tensor(function, factor):
                return None
            value, outer = outer, function.parent(outer)
    match outer, function.parent(outer) if outer is not None else None:
        case ast.AugAssign(target=ast.Name() as total, op=ast.Add()), _:
            return Addition(outer, total, template, factor)
        case ast.BinOp(op=ast.Add(), left=left, right=right), ast.Assign(targets=[ast.Name() as total]) as statement:
            other = left if right is value else right
            return Addition(statement, total, template, factor) if function.same_name(total, other) else None
    return None


def a_tensor(function: Function, factor: ast.expr) -> bool:
    """Whether a factor is a tensor, or computing it has side effects."""
    return function.fact(factor).is_tensor or not function.pure(factor)


def only_divided(function: Function, total: str, added: Addition) -> bool:
    """Whether a total is only ever divided, which makes the 0 that it begins with a float."""
    own = {id(n) for n in ast.walk(added.statement)}
    uses = ((n, function.parent(n)) for n in function.names(total) if id(n) not in own)
    return all(
        isinstance(p.op, ast.Div) and n in (getattr(p, "left", None), getattr(p, "target", None))
        if isinstance(p, (ast.BinOp, ast.AugAssign))
        else isinstance(n.ctx, ast.Store)
        for n, p in uses
    )


def before_end(function: Function, total: str, loop: ast.AST) -> list[ast.Name]:
    """Where a total is bound, but for `total /= n` after the loop: there it is a number again."""
    end = loop_end(loop)
    bound = [n for n in function.binds(total) if n.lineno <= end or not isinstance(function.parent(n), ast.AugAssign)]
    return [n for n in bound if not is_over(function, function.parent(n), loop)]


def is_over(function: Function, statement: ast.AST | None, loop: ast.AST) -> bool:
    """Whether this is `total = total ** 0.5` after a loop that does not come round again."""
    if not isinstance(statement, ast.Assign) or statement.lineno <= loop_end(loop):
        return False
    return not any(isinstance(n, LOOPS) for n in function.around(loop))


def used_after(function: Function, total: str, loop: ast.AST) -> bool:
    """Whether anybody may ask for the total after the loop, or in a loop around it that comes round again."""
    if isinstance(function.scope, ast.Module) or function.captured(total):
        return True
    outer = [n for n in function.around(loop) if isinstance(n, LOOPS)]
    end = loop_end(loop)
    return any(
        n.lineno > end or (any(o in function.around(n) for o in outer) and loop not in function.around(n))
        for n in function.reads(total)
    )


def loop_end(loop: ast.AST) -> int:
    """The last line of a loop."""
    return getattr(loop, "end_lineno", None) or 0


def read_in_passes(function: Function, loop: ast.AST) -> list[ast.AST]:
    """What reads a number in each pass of a loop: what surely does, and `x.item()` of whatever else."""
    known = [s.node for s in function.sites if s.confidence >= 2 and tensor_read(function, s.node) is not None]
    inside = {id(node) for node in known}
    items = [
        call
        for call in function.every(ast.Call)
        if without_item(call) is not call and not any(id(n) in inside for n in (call, *function.around(call)))
    ]
    found: list[ast.AST] = [n for n in (*known, *items) if function.loop(n) is loop and not function.sometimes(n, loop)]
    fetched = (s.node for s in function.sites if s.confidence >= 2 and s.op in COPIES and function.loop(s.node) is loop)
    arms = {each for node in (*known, *items, *fetched) for each in function.arms(node, loop)}
    return found + [n for n in ast.walk(loop) if isinstance(n, ast.If) and {(id(n), True), (id(n), False)} <= arms]


def goes_round_devices(loop: Loop) -> bool:
    """Whether each pass of a loop may be on another device: `for shard, device in ...`, `.cuda(rank)`."""
    names = {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    if any(map(is_device, names)):
        return True
    known = _sent_to_one(loop, names)
    to = (n for call in ast.walk(loop) for place in _sent_to(call) for n in ast.walk(place) if isinstance(n, ast.Name))
    return any(n.id in names and n.lineno <= known.get(n.id, n.lineno) for n in to)


def _sent_to(node: ast.AST) -> list[ast.expr]:
    """Where a call sends a tensor."""
    called = node.func if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or not isinstance(called, ast.Attribute) or called.attr not in ("to", "cuda"):
        return []
    return [*node.args, *(k.value for k in node.keywords if k.arg == "device")]


def _sent_to_one(loop: Loop, names: set[str]) -> dict[str, int]:
    """The names that hold what each pass sends to one device, with the line behind which they do: `x = x.to(device)`."""
    sent: dict[str, list[tuple[ast.Name, bool]]] = {}  # where a name is bound, and whether to that in each pass
    for each in ast.walk(loop):
        if isinstance(each, ast.Assign):
            targets, values = each_of(each.targets[0]), each_of(each.value)
            for target, value in zip(targets, values, strict=False):
                if isinstance(target, ast.Name) and len(targets) == len(values) and _to_one(value, names):
                    sent.setdefault(target.id, []).append((target, each in loop.body))
    bound = ast.walk(loop)
    own = {id(n) for n in ast.walk(loop.target)} if isinstance(loop, (ast.For, ast.AsyncFor)) else set()
    known = {id(n) for places in sent.values() for n, _ in places} | own
    other = {n.id for n in bound if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load) and id(n) not in known}
    lines = {name: [n.lineno for n, always in places if always] for name, places in sent.items() if name not in other}
    return {name: min(at) for name, at in lines.items() if at}


def _to_one(value: ast.expr, names: set[str]) -> bool:
    """Whether an expression sends what it gives to a device that none of these names says."""
    is_cuda = isinstance(value, ast.Call) and not value.args and getattr(value.func, "attr", "") == "cuda"
    to = _sent_to(value)
    return is_cuda or (bool(to) and not any(isinstance(n, ast.Name) and n.id in names for p in to for n in ast.walk(p)))


def summed(
    function: Function, site: Site, tensor: ast.expr, added: Addition, starts: Sequence[float | None]
) -> Summed | None:
    """What the total of a tensor's numbers is, which begins with one of `starts`; None where nobody knows."""
    dtype = site.fact.dtype
    counted = counted_mask(function, tensor) if dtype is Dtype.UNKNOWN else None
    of_whole = dtype is Dtype.INT or counted is not None
    whole = of_whole and all(isinstance(s, int) for s in starts) and added.factor is None
    surely = dtype is Dtype.FLOAT or all(isinstance(s, float) for s in starts) or is_float(function, tensor)
    # which makes a float of whatever it is
    divided = dtype is Dtype.UNKNOWN and only_divided(function, added.total.id, added)
    return Summed(whole, counted, surely) if dtype is not Dtype.BOOL and (whole or surely or divided) else None


def is_float(function: Function, tensor: ast.expr) -> bool:
    """Whether a number is a float by its last cast, `hits.type(torch.float).sum()`, or because it is called a loss."""
    op = function.op(function.value(tensor))
    if op is not None and op.name in ("norm", "vector_norm"):  # there is none of whole numbers
        return True
    op = function.op(tensor)
    while op is not None and not (cast(function, op) or op.name in ("float", "double", "half")):
        op = function.op(op.base)
    if op is None:
        return LOSS.search(function.file.text(tensor)) is not None
    to = next((function.dotted(a) or "" for a in [*op.args, *op.keywords.values()]), op.name)
    return "float" in to or to.endswith(("double", "half"))


_WIDE = frozenset(f"torch.{each}" for each in ("float", "float32", "float64", "double"))


def is_wide(function: Function, tensor: ast.expr) -> bool:
    """Whether a number is computed in float32 or more already, as it says: `x.float().sum()`, `x.sum(dtype=torch.double)`."""
    op = function.op(tensor)
    while op is not None:
        if (dtype := op.keywords.get("dtype")) is not None:
            return (function.dotted(dtype) or "") in _WIDE
        if op.name in ("float", "double"):
            return True
        if op.name not in ("sum", "mean", "norm", "max", "min", "abs", "square", "detach"):
            return False
        op = function.op(op.base)
    return False


def counted_mask(function: Function, tensor: ast.expr) -> ast.expr | None:
    """What is called a mask, of which nothing says what it holds, and whose elements are added up: `mask.sum()`."""
    op = function.op(tensor)
    held = op.base if op is not None and op.name == "sum" and "dtype" not in op.keywords else None
    return held if held is not None and taken_for_mask(held, function.fact(held)) else None


def is_long(function: Function, tensor: ast.expr) -> bool:
    """Whether whole numbers are added up already, which gives 64 bits."""
    op = function.op(tensor)
    return op is not None and op.name in ("sum", "count_nonzero") and "dtype" not in op.keywords


def is_one_number(function: Function, site: Site, tensor: ast.expr) -> bool:
    """Whether what is read is surely a tensor of no dimension: any other would only fail after the loop."""
    op = function.op(tensor)
    only_torch = op is not None and op.name in ("count_nonzero", *TORCH_ONLY)
    made = function.op(op.base) if op is not None and op.name == "sum" else None
    only_torch = only_torch or (made is not None and made.name in TORCH_ONLY)
    return site.fact.ndim == 0 and (site.fact.confidence == 3 or only_torch)


def starts_of(function: Function, added: Addition, loop: Loop) -> list[float | None] | None:
    """What a total is before its loop, each a number that is written out; None where it may be anything else."""
    total = added.total.id
    given = function.once(f"starts of {total}", function.scope, lambda: starting(function, total))
    bound = function.once(f"binds {total} before its end", loop, lambda: before_end(function, total, loop))
    begins = [v for assign, v in given if assign is not added.statement and not is_over(function, assign, loop)]
    if len(begins) != len(bound) - (added.total in bound) or not begins:
        return None
    starts = [function.constant(value) for value in begins]
    return None if None in starts or seen_half_done(function, total, loop) else starts


def read_inside(function: Function, added: Addition, loop: Loop) -> list[ast.Name]:
    """Where a total is read in its loop, but for where it is added to."""
    own = {id(n) for n in ast.walk(added.statement)}
    return [n for n in function.reads(added.total.id) if id(n) not in own and loop in function.around(n)]


def same_in_float64(function: Function, tensor: ast.expr, added: Addition, starts: Sequence[float | None]) -> bool:
    """Whether the device adds up as Python does, to the last bit."""
    factor = added.factor
    plain = not {"/", "**"} & {*added.template.split()} and (factor is None or python_number(function, factor))
    floats = all(isinstance(start, float) for start in starts) or only_divided(function, added.total.id, added)
    return plain and floats and real(function, tensor)
