"""Operators: arithmetic and comparisons of tensors, and where Python asks for the truth of one."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Dtype, Fact
from syncscope.model.ops import Op
from syncscope.tensors.conditions import condition, one_object
from syncscope.tensors.facts import (
    ANY_DTYPE,
    ANY_SHAPE,
    ARRAY,
    BOOL,
    COMPARED,
    DYNAMIC,
    FLOAT,
    HOST,
    INT,
    INTEGER,
    NO_TENSOR,
    NONE,
    NOTHING_KNOWN,
    NP_ARRAY,
    NUMBER,
    OTHER,
    PICKED,
    SCALAR,
    SEQUENCE,
    STRING,
    TENSOR,
    TEXT,
    TRUTH,
    Hashed,
    Items,
    Listed,
    device_of,
    holds_tensor,
    items,
    like,
    listed,
    sequence,
)
from syncscope.tensors.frame import Frame, evaluate
from syncscope.tensors.guards import behind
from syncscope.tensors.joins import element, join
from syncscope.tensors.narrowing import learnt
from syncscope.tensors.torch.host_indices import picked_from_host


def binary_operation(frame: Frame, node: ast.BinOp) -> Fact:
    """`a + b` and its kin."""
    table = frame.table
    left = table[node.left.__class__](frame, node.left)
    right = table[node.right.__class__](frame, node.right)
    if left.kind is NOTHING_KNOWN and right.kind is NOTHING_KNOWN:
        if left.ref is PICKED or right.ref is PICKED:
            return left if left.ref is PICKED else right  # a tensor, if what it was picked from is one
        masks = (left is COMPARED) + (right is COMPARED)
        both = masks and node.op.__class__ in (ast.BitAnd, ast.BitOr)
        return COMPARED if both or (masks == 2 and node.op.__class__ is ast.Mult) else UNKNOWN
    if left.ref is PICKED and right.kind is TENSOR:
        picked_from_host(frame, left.provenance, right.device is not HOST)
    elif right.ref is PICKED and left.kind is TENSOR:
        picked_from_host(frame, right.provenance, left.device is not HOST)
    elif left.ref is TEXT and node.op.__class__ is ast.Mod:
        _format(frame, node, right)
    return binary(node, left, right, node.op)


def _format(frame: Frame, node: ast.BinOp, value: Fact) -> None:
    """`"..." % value`, or of several values in a tuple."""
    held = value if value.kind is TENSOR else None
    if value.kind is SEQUENCE:
        held = _spread(frame, node.right) or holds_tensor(value)
    if held is not None:
        frame.emit(Op.FORMAT, node, node.right, held)


def binary(node: ast.AST, left: Fact, right: Fact, op: ast.operator) -> Fact:
    """The result of an arithmetic or bitwise operator."""
    lk, rk = left.kind, right.kind
    operator = op.__class__
    if lk is TENSOR:
        return _of_tensor(node, left, right, operator)
    if rk is TENSOR and left.ref is not TEXT:
        return _of_tensor(node, right, left, operator)
    if lk is ARRAY or rk is ARRAY:
        return NP_ARRAY
    if lk is SCALAR and rk is SCALAR:
        whole = left.dtype is INT and right.dtype is INT and operator not in (ast.Div, ast.Pow)
        return INTEGER if whole else NUMBER
    if lk is SEQUENCE:
        return _of_sequence(node, left, right, operator)
    return STRING if left.ref is TEXT else UNKNOWN


def _of_tensor(node: ast.AST, one: Fact, other: Fact, operator: type[ast.operator]) -> Fact:
    """What an operator makes of a tensor and another value, which may stand before it."""
    if other.kind is OTHER and one.confidence < 3:
        return UNKNOWN
    dtype = _dtype(one, other, operator)
    if other.kind is not TENSOR:
        device = one.device if other.kind is not NOTHING_KNOWN or one.device is not HOST else device_of(one, other)
        return like(one, node, dtype=dtype, device=device, ndim=one.ndim if other.kind is SCALAR else None)
    ndim = None
    if one.ndim is not None and other.ndim is not None:
        of_matrices = operator is ast.MatMult
        ndim = max(one.ndim, other.ndim) if not of_matrices or one.ndim == other.ndim > 1 else None
    return _both(node, one, other, dtype, ndim)


def _of_sequence(node: ast.AST, left: Fact, right: Fact, operator: type[ast.operator]) -> Fact:
    """Lists and tuples behind one another, and repeated."""
    if operator is ast.Mult:
        of_list = isinstance(left.ref, Listed) or (isinstance(node, ast.BinOp) and isinstance(node.left, ast.List))
        return listed(element(left)) if of_list else items(element(left))
    if operator is not ast.Add or right.kind is not SEQUENCE:
        return UNKNOWN
    if left.elements and right.elements:
        return sequence(*left.elements, *right.elements)
    if isinstance(node, ast.BinOp) and all(map(_is_list, (node.left, node.right), (left, right))):
        return listed(join(element(left), element(right)))
    return join(left, right)


def _spread(frame: Frame, node: ast.expr) -> Fact | None:
    """A tensor whose numbers are put into a tuple one by one: `("loss", *losses)`."""
    within = node.elts if isinstance(node, ast.Tuple) else []
    spread = (each.value.id for each in within if isinstance(each, ast.Starred) and isinstance(each.value, ast.Name))
    return next((fact for name in spread if (fact := frame.env.get(name, UNKNOWN)).kind is TENSOR), None)


def _is_list(node: ast.expr, fact: Fact) -> bool:
    """Whether a sequence is a list, and no tuple."""
    return isinstance(node, ast.List) or isinstance(fact.ref, Listed)


_BITWISE = (ast.BitAnd, ast.BitOr, ast.BitXor)


def _dtype(one: Fact, other: Fact, operator: type[ast.operator]) -> Dtype:
    """The class of dtype that a tensor and another value give."""
    if operator is ast.Div:
        return FLOAT
    if one.dtype is other.dtype:
        if one.dtype is not BOOL:
            return one.dtype
        # a product of two masks is one, too
        return BOOL if operator in (*_BITWISE, ast.Mult, ast.Add, ast.Sub) else INT
    if FLOAT in (one.dtype, other.dtype) and other.kind in (TENSOR, SCALAR):
        return FLOAT
    if (one.dtype is INT and other.dtype is BOOL) or (one.dtype is BOOL and other.dtype is INT):
        return INT
    if other.kind is SCALAR and other.dtype is INT:
        return one.dtype
    return BOOL if operator in _BITWISE and BOOL in (one.dtype, other.dtype) else ANY_DTYPE


def _both(node: ast.AST, one: Fact, other: Fact, dtype: Dtype, ndim: int | None) -> Fact:
    """What an operation over two tensors gives, elementwise."""
    surer = one if one.confidence >= other.confidence else other
    shape = one.shape
    if shape is not other.shape:
        shape = DYNAMIC if DYNAMIC in (shape, other.shape) else ANY_SHAPE
    return like(surer, node, dtype=dtype, device=device_of(one, other), shape=shape, ndim=ndim)


def unary_operation(frame: Frame, node: ast.UnaryOp) -> Fact:
    """`-a`, `~a`, `not a`."""
    if node.op.__class__ is ast.Not:
        condition(frame, node.operand)
        return TRUTH
    fact = evaluate(frame, node.operand)
    if fact.kind is TENSOR:
        return like(fact, node)
    return (
        fact
        if fact.kind in (SCALAR, ARRAY) or fact.ref is PICKED or (fact is COMPARED and node.op.__class__ is ast.Invert)
        else UNKNOWN
    )


def comparison(frame: Frame, node: ast.Compare) -> Fact:
    """`a < b < c`: all comparisons but the last are asked for their truth."""
    left, before = evaluate(frame, node.left), node.left
    result = TRUTH
    last = len(node.ops) - 1
    for position, (op, right_node) in enumerate(zip(node.ops, node.comparators, strict=False)):
        right = evaluate(frame, right_node)
        operator = op.__class__
        if operator in (ast.Is, ast.IsNot):
            result = TRUTH
        elif operator in (ast.In, ast.NotIn):
            _looked_up(frame, node, (before, left), (right_node, right))
            result = TRUTH
        else:
            result = _of_two(frame, node, (before, left), (right_node, right), operator in (ast.Eq, ast.NotEq))
            if position < last and result.kind is TENSOR:
                frame.emit(Op.CONDITION, node, before, result)
        left, before = right, right_node
    return UNKNOWN if result is COMPARED and last else result


def _looked_up(frame: Frame, node: ast.Compare, one: tuple[ast.expr, Fact], within: tuple[ast.expr, Fact]) -> None:
    """`x in many`: each of many is compared, unless they are found by what they are."""
    at, fact = one
    where, many = within
    if many.kind is TENSOR and fact.ref is not TEXT:
        frame.emit(Op.CONDITION, node, where, many, 3 if many.confidence == 3 or fact.kind is TENSOR else 1)
    elif fact.kind is TENSOR and many.kind is SEQUENCE and fact.confidence > 1 and not _hashed(many):
        frame.emit(Op.CONDITION, node, at, fact, 2)


def _of_two(
    frame: Frame, node: ast.Compare, one: tuple[ast.expr, Fact], other: tuple[ast.expr, Fact], equal: bool
) -> Fact:
    """What a comparison of two values gives; `equal`: it asks whether they are."""
    left, right = one[1], other[1]
    kinds = left.kind, right.kind
    if TENSOR in kinds:
        text = left.ref is TEXT or right.ref is TEXT
        never = text or left is NONE or right is NONE or (equal and SEQUENCE in kinds)
        return UNKNOWN if never else _compared(node, left, right)
    if ARRAY in kinds:
        return NP_ARRAY
    if NOTHING_KNOWN in kinds:
        plain = (
            fact.kind is SCALAR or (fact.kind is NOTHING_KNOWN and fact is not NO_TENSOR) for fact in (left, right)
        )
        return COMPARED if all(plain) else UNKNOWN
    if equal and left.kind is SEQUENCE and right.kind is SEQUENCE:
        for at, side in (one, other):
            each = next((e for e in side.elements if e.kind is TENSOR), None)
            if each is not None:
                frame.emit(Op.CONDITION, node, at, each)
                break
    return TRUTH


def _hashed(fact: Fact) -> bool:
    """Whether it is a dict or a set, in which a tensor is found by what it is and not by its values."""
    return isinstance(fact.ref, Hashed) or (isinstance(fact.ref, Items) and fact.ref.keys is not None)


def _compared(node: ast.AST, left: Fact, right: Fact) -> Fact:
    one, other = (left, right) if left.kind is TENSOR else (right, left)
    if other.kind is TENSOR:
        ndim = max(one.ndim, other.ndim) if one.ndim is not None and other.ndim is not None else None
        return _both(node, one, other, BOOL, ndim)
    return like(one, node, dtype=BOOL, ndim=one.ndim if other.kind is SCALAR else None)


def boolean_operation(frame: Frame, node: ast.BoolOp) -> Fact:
    """`a and b` as a value: all operands but the last are asked for their truth."""
    *first, last = node.values
    result: Fact | None = None
    env, guarded, around = frame.env, frame.guarded, frame.around
    for value in first:
        fact = condition(frame, value)
        if frame.waits is not None:
            frame.around = behind(frame, value, node.op)
        frame.guarded = frame.guarded or one_object(node, value)
        when, otherwise = learnt(frame, value)
        more = when if node.op.__class__ is ast.And else otherwise
        if more:
            frame.env = {**frame.env, **more}
        result = fact if result is None else join(result, fact)
    fact = evaluate(frame, last)
    frame.env, frame.guarded, frame.around = env, guarded, around
    if result is None:
        return fact
    if result.kind is NOTHING_KNOWN and fact.device is HOST and node.op.__class__ is ast.And:
        # `self.training and torch.rand([]) < p`: a flag comes first
        return fact.but(confidence=min(fact.confidence, 2))
    return join(result, fact)
