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
COPYING = {"repeat", "contiguous"}  # what they give is laid out anew
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
            if made is None or function.seen_by(made) != [node] or len(made.targets) != 1:
                return None
            return _parts(function, made.value)
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
    inner = [_parts(function, part) for part in parts if not one_value(function, function.fact(part), part)]
    known = [each for each in inner if each is not None]
    if not inner or len(known) < len(inner):
        return None
    return Made(
        [call for each in known for call in each.calls],
        computed or any(each.computed for each in known),
        shared or (not fresh and any(each.shared for each in known)),
    )


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
