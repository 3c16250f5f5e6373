"""What can be proved of tensors in the user's code: same shape, same rank, one value."""

from __future__ import annotations

import ast

from syncscope.model.fact import Dtype, Fact, Site, Value
from syncscope.rules._function import Function

ELEMENTWISE = {
    "isnan", "isinf", "isfinite", "isposinf", "isneginf", "logical_not", "abs", "bool", "float", "double", "half", "int",
    "long", "clone", "detach", "contiguous", "neg", "sign", "square", "exp", "sigmoid", "tanh", "relu", "round", "floor",
    "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor",
}  # fmt: skip


def same_shape(function: Function, tensor: ast.expr, base: ast.expr, at: ast.AST) -> bool:
    """Whether a tensor is computed element by element from `base`, so that it has its very shape.

    `tensor` may be a name: then nothing must have disturbed `base` between its definition and `at`.
    """
    if isinstance(tensor, ast.Name) and not function.same(tensor, base):
        defined = function.definition(tensor)
        if defined is None or not isinstance(base, ast.Name) or function.disturbed(tensor.id, defined, at):
            return False
        rebound = any(
            function.view.span(defined).end <= function.view.span(n).start < function.view.span(_at(at)).start
            for n in function.binds(base.id)
        )  # what is written into base between leaves its shape as it is
        return not rebound and same_shape(function, defined.value, base, defined)
    if function.same(tensor, base):
        return isinstance(tensor, (ast.Name, ast.Attribute))
    parts: list[ast.expr]
    if isinstance(tensor, ast.Compare):
        parts = [tensor.left, *tensor.comparators] if len(tensor.ops) == 1 else []
        if any(isinstance(op, (ast.In, ast.NotIn, ast.Is, ast.IsNot)) for op in tensor.ops):
            return False
    elif isinstance(tensor, ast.BinOp):
        if isinstance(tensor.op, ast.MatMult):
            return False
        parts = [tensor.left, tensor.right]
    elif isinstance(tensor, ast.UnaryOp) and not isinstance(tensor.op, ast.Not):
        parts = [tensor.operand]
    elif (op := function.op(tensor)) is not None and op.name in ELEMENTWISE and not op.keywords:
        parts = [op.base, *op.args]
    else:
        return False
    rest = [p for p in parts if function.constant(p) is None]
    return bool(rest) and all(same_shape(function, p, base, at) for p in rest)


def _at(node: ast.AST) -> ast.expr | ast.stmt:
    assert isinstance(node, (ast.expr, ast.stmt))
    return node


def same_rank(site: Site, function: Function, mask: ast.expr, base: ast.expr) -> bool:
    """Whether a mask has as many dimensions as what it selects from: in code that runs, then their shapes are equal."""
    a, b = site.fact_of(mask), site.fact_of(base)
    return (a.ndim is not None and a.ndim == b.ndim) or same_shape(function, mask, base, site.node)


def is_mask(fact: Fact) -> bool:
    """Whether an index is surely a bool tensor: an integer one gathers."""
    return fact.kind is Value.TENSOR and fact.dtype is Dtype.BOOL


def one_value(function: Function, fact: Fact, node: ast.expr) -> bool:
    """Whether an expression is surely a Python number."""
    return function.constant(node) is not None or (fact.kind is Value.SCALAR and fact.sure >= 2)
