"""What is computed on the host of nothing but tensors made there and of numbers: all of it can be made on the device."""

from __future__ import annotations

import ast
from typing import NamedTuple

from syncscope.codemod.function import Function
from syncscope.codemod.proofs import ELEMENTWISE, NOT_ELEMENTWISE, cast, one_value
from syncscope.tensors.syntax import each_of

SAME = {f"torch.{name}" for name in "zeros ones full eye empty".split()}
CLOSE = {f"torch.{name}" for name in "arange linspace logspace hann_window hamming_window".split()}
DRAWN = {f"torch.{name}" for name in "rand randn randint randperm normal".split()}
TYPES = {
    f"torch.{name}Tensor": f"torch.{dtype}"
    for name, dtype in zip(
        "Float Double Half BFloat16 Byte Char Short Int Long Bool".split(),
        "float double half bfloat16 uint8 int8 int16 int long bool".split(),
        strict=True,
    )
}
"""`torch.FloatTensor(2, 3)`, as it was written once: what it holds nobody knows before it is filled."""
FILLING = {"fill_", "zero_"}
SHAPING = set("unsqueeze squeeze view reshape flatten t transpose permute expand clone".split())
COPYING = {"repeat", "contiguous", "triu", "tril"}  # what they give is laid out anew
DESCRIBED = {"shape", "size", "dim", "dtype", "numel"}
JOINING = {"cat", "stack", "hstack", "vstack"}
SAID: set[str | None] = {"device", "out", "requires_grad", "pin_memory", "generator", None}


class Made(NamedTuple):
    """The calls that make tensors, in an expression and behind its names; and what is done with them.

    `computed`: more than shaped and joined. `shared`: it is a part of another tensor, or repeats its elements: a copy of it is
    laid out otherwise.
    """

    calls: list[ast.Call]
    computed: bool
    shared: bool


def made_on_host(function: Function, tensor: ast.expr) -> Made | None:
    """What a tensor is made of, where all of it is made for this one use, of nothing that only the host has."""
    found = _parts(function, tensor)
    return found if found is not None and found.calls else None


def _parts(function: Function, node: ast.expr) -> Made | None:
    parts: list[ast.expr]
    computed = fresh = True
    shared = False
    match node:
        case ast.Name():
            made = function.reaching_definition(node)
            filled = _written(function, made, node) if made is not None and len(made.targets) == 1 else None
            whole = _parts(function, made.value) if made is not None and filled is not None else None
            put = [_parts(function, part) for part in filled or () if not _is_number(function, part)]
            if whole is None or None in put:
                return None
            each = [whole, *filter(None, put)]
            return Made([c for one in each for c in one.calls], any(one.computed for one in each), whole.shared)
        case ast.Call() if function.dotted(node.func) in SAME | CLOSE | DRAWN:
            given = [*node.args, *(k.value for k in node.keywords)]
            if SAID.intersection(k.arg for k in node.keywords) or any(function.fact(g).is_tensor for g in given):
                return None
            return Made([node], computed=False, shared=False)
        case ast.BinOp(left=left, right=right, op=op) if not isinstance(op, ast.MatMult):
            parts = [left, right]
        case ast.Compare(left=left, ops=[op], comparators=[right]) if not isinstance(op, NOT_ELEMENTWISE):
            parts = [left, right]
        case ast.UnaryOp(operand=operand, op=ast.USub() | ast.Invert()):
            parts = [operand]
        case ast.Subscript(value=value, slice=index) if all(
            isinstance(p, (ast.Slice, ast.Constant)) for p in each_of(index)
        ):
            parts, computed, fresh = [value], False, False
            shared = not all(takes_all(part) for part in each_of(index))
        case _:
            found = function.op(node)
            if found is None:
                return None
            if found.name in JOINING and isinstance(found.base, (ast.List, ast.Tuple)):
                parts, computed = list(found.base.elts), False
            elif found.name in SHAPING | COPYING or cast(function, found):
                parts, computed, fresh = [found.base], False, found.name in COPYING
                shared = found.name == "expand"
            elif found.name in FILLING and not found.keywords:
                if not all(one_value(function, function.fact(a), a) for a in found.args):
                    return None
                if isinstance(found.base, ast.Call) and _only_sized(function, found.base):
                    return Made([found.base], computed=False, shared=False)
                parts, computed, fresh = [found.base], False, False
            elif found.name in ELEMENTWISE and not found.keywords:
                parts = [found.base, *found.args]
                computed = found.name not in ("long", "float", "double", "bool")
                fresh = computed
            else:
                return None
    inner = [_parts(function, part) for part in parts if not _is_number(function, part)]
    known = [each for each in inner if each is not None]
    if not inner or len(known) < len(inner):
        return None
    return Made(
        [call for each in known for call in each.calls],
        computed or any(each.computed for each in known),
        shared or (not fresh and any(each.shared for each in known)),
    )


def _written(function: Function, made: ast.Assign, last: ast.Name) -> list[ast.expr] | None:
    """What is written to slices of a new tensor before its last use, `x[:n] = part`; None where it serves otherwise, too."""
    found, uses = [], _uses(function, made, last)
    for use in uses:
        held = function.parent(use)
        if use is last or (isinstance(held, ast.Attribute) and held.attr in DESCRIBED):
            continue
        statement = function.statement(use)
        match statement:
            case ast.Assign(targets=[ast.Subscript(value=target, slice=index)], value=value) if target is use:
                slices = [isinstance(part, ast.Slice) for part in each_of(index)]
                plain = all(
                    s or one_value(function, function.fact(p), p) for s, p in zip(slices, each_of(index), strict=True)
                )
                after = function.file.span(use).start > function.file.span(last).start
                if not plain or not any(slices) or after or function.loop(last) is not function.loop(made):
                    return None  # a number at a place is sent there
                found.append(value)
            case _:
                return None
    return found if last in uses else None


def _uses(function: Function, made: ast.Assign, last: ast.Name) -> list[ast.Name]:
    """The uses that may see what an assignment gives a name: all of them where its last use binds the name again."""
    seen, block, moved = function.seen_by(made), function.block(made), function.statement(last)
    again = isinstance(moved, ast.Assign) and any(function.same_name(target, last) for target in moved.targets)
    if seen or not again or moved not in block or function.captured(last.id):
        return seen
    span = range(function.file.span(made).end, function.file.span(moved).end)
    return [use for use in function.reads(last.id) if function.file.span(use).start in span]


def _is_number(function: Function, node: ast.expr) -> bool:
    """Whether this is a Python number: surely, or because tensors are made in that size."""
    if one_value(function, function.fact(node), node):
        return True
    made = (c for c in function.every(ast.Call) if function.dotted(c.func) in SAME | CLOSE | DRAWN)
    return any(function.same_name(a, node) for c in made for a in (*c.args, *(k.value for k in c.keywords)))


def _only_sized(function: Function, node: ast.Call) -> bool:
    """Whether this is `torch.FloatTensor(2, 3)` or `torch.FloatTensor(x.shape)`, which is given sizes, not what it holds."""
    if node.keywords or function.dotted(node.func) not in TYPES:
        return False
    match node.args:
        case [ast.Attribute(value=of, attr="shape")] | [ast.Call(func=ast.Attribute(value=of, attr="size"), args=[])]:
            fact = function.fact(of)
            return fact.is_tensor and fact.confidence >= 2
    return bool(node.args) and all(one_value(function, function.fact(a), a) for a in node.args)


def takes_all(part: ast.expr) -> bool:
    """Whether a part of an index takes all of a dimension, or adds one."""
    if isinstance(part, ast.Slice):
        return part.lower is part.upper is part.step is None
    return isinstance(part, ast.Constant) and part.value is None
