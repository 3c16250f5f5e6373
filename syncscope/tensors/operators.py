"""Operators: arithmetic and comparisons of tensors, and where Python asks for the truth of one."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Dtype, Fact
from syncscope.model.ops import Op
from syncscope.tensors.asked import behind
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
from syncscope.tensors.joins import element, join
from syncscope.tensors.narrowing import learnt
from syncscope.tensors.torch.host_indices import picked_from_host

NOTHING_KNOWN = UNKNOWN.kind


def binary_operation(frame: Frame, node: ast.BinOp) -> Fact:
    """`a + b` and its kin."""
    table = frame.table
    left = table[node.left.__class__](frame, node.left)
    right = table[node.right.__class__](frame, node.right)
    if left.kind is NOTHING_KNOWN and right.kind is NOTHING_KNOWN:
        masks = (left is COMPARED) + (right is COMPARED)
        both = masks and node.op.__class__ in (ast.BitAnd, ast.BitOr)
        return COMPARED if both or (masks == 2 and node.op.__class__ is ast.Mult) else UNKNOWN
    return binary(node, left, right, node.op, frame)


def binary(node: ast.AST, left: Fact, right: Fact, op: ast.operator, frame: Frame | None = None) -> Fact:
    """The result of an arithmetic or bitwise operator; with a `frame`, what it waits for is emitted."""
    lk, rk = left.kind, right.kind
    operator = op.__class__
    if lk is TENSOR or rk is TENSOR:
        one, other = (left, right) if lk is TENSOR else (right, left)
        if one is right and left.ref is TEXT:  # "..." % tensor
            if frame is not None and operator is ast.Mod and isinstance(node, ast.BinOp):
                frame.emit(Op.FORMAT, node, node.right, right)
            return STRING
        if other.kind is OTHER and one.confidence < 3:
            return UNKNOWN
        dtype = _dtype(one, other, operator)
        if other is PICKED and frame is not None and isinstance(node, ast.BinOp):
            picked_from_host(frame, node.right if one is left else node.left, one.device is not HOST)
        if other.kind is TENSOR:
            ndim = max(one.ndim, other.ndim) if one.ndim is not None and other.ndim is not None else None
            if operator is ast.MatMult:
                ndim = one.ndim if one.ndim == other.ndim and one.ndim is not None and one.ndim > 1 else None
            return _both(node, one, other, dtype, ndim)
        device = one.device if other.kind is not NOTHING_KNOWN or one.device is not HOST else device_of(one, other)
        return like(one, node, dtype=dtype, device=device, ndim=one.ndim if other.kind is SCALAR else None)
    if lk is ARRAY or rk is ARRAY:
        return NP_ARRAY
    if lk is SCALAR and rk is SCALAR:
        if left.dtype is right.dtype and left.dtype is INT and operator not in (ast.Div, ast.Pow):
            return INTEGER
        return NUMBER
    if lk is SEQUENCE and rk is SEQUENCE and operator is ast.Add:
        if left.elements and right.elements:
            return sequence(*left.elements, *right.elements)
        if isinstance(node, ast.BinOp) and all(map(_is_list, (node.left, node.right), (left, right))):
            return listed(join(element(left), element(right)))
        return join(left, right)
    if lk is SEQUENCE and operator is ast.Mult:
        of_list = isinstance(left.ref, Listed) or (isinstance(node, ast.BinOp) and isinstance(node.left, ast.List))
        return listed(element(left)) if of_list else items(element(left))
    if left.ref is TEXT:
        if operator is ast.Mod and rk is SEQUENCE and frame is not None and isinstance(node, ast.BinOp):
            held = _spread(frame, node.right) or holds_tensor(right)
            if held is not None:
                frame.emit(Op.FORMAT, node, node.right, held)
        return STRING
    return UNKNOWN


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
        return (
            BOOL if operator in (*_BITWISE, ast.Mult, ast.Add, ast.Sub) else INT
        )  # a product of two masks is one, too
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
    return fact if fact.kind in (SCALAR, ARRAY) or (fact is COMPARED and node.op.__class__ is ast.Invert) else UNKNOWN


def comparison(frame: Frame, node: ast.Compare) -> Fact:
    """`a < b < c`: all comparisons but the last are asked for their truth."""
    table = frame.table
    left = table[node.left.__class__](frame, node.left)
    before = node.left
    result = TRUTH
    last = len(node.ops) - 1
    for position, (op, right_node) in enumerate(zip(node.ops, node.comparators, strict=False)):
        right = table[right_node.__class__](frame, right_node)
        operator = op.__class__
        if operator is ast.Is or operator is ast.IsNot:
            result = TRUTH
        elif operator is ast.In or operator is ast.NotIn:
            result = TRUTH
            if right.kind is TENSOR and left.ref is not TEXT:
                confidence = 3 if right.confidence == 3 or left.kind is TENSOR else 1
                frame.emit(Op.CONDITION, node, right_node, right, confidence)
            elif left.kind is TENSOR and right.kind is SEQUENCE and left.confidence > 1 and not _hashed(right):
                frame.emit(Op.CONDITION, node, before, left, 2)
        elif left.kind is TENSOR or right.kind is TENSOR:
            if (left.ref is TEXT or right.ref is TEXT or left is NONE or right is NONE) or (
                (left.kind is SEQUENCE or right.kind is SEQUENCE) and operator in (ast.Eq, ast.NotEq)
            ):
                result = UNKNOWN
            else:
                result = _compared(node, left, right)
                if position < last:
                    frame.emit(Op.CONDITION, node, before, result)
        elif left.kind is ARRAY or right.kind is ARRAY:
            result = NP_ARRAY
        elif left.kind is NOTHING_KNOWN or right.kind is NOTHING_KNOWN:
            sides = (left, right)
            plain = all(s.kind is SCALAR or (s.kind is NOTHING_KNOWN and s is not NO_TENSOR) for s in sides)
            result = COMPARED if plain and last == 0 else UNKNOWN
        elif left.kind is SEQUENCE and right.kind is SEQUENCE and operator in (ast.Eq, ast.NotEq):
            result = TRUTH
            for side, at in ((left, before), (right, right_node)):
                each = next((e for e in side.elements if e.kind is TENSOR), None)
                if each is not None:
                    frame.emit(Op.CONDITION, node, at, each)
                    break
        else:
            result = TRUTH
        left, before = right, right_node
    return result


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
        return fact.but(
            confidence=min(fact.confidence, 2)
        )  # `self.training and torch.rand([]) < p`: a flag comes first
    return join(result, fact)
