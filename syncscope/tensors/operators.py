"""Operators: arithmetic and comparisons of tensors, and where Python asks for the truth of one."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact, Shape
from syncscope.tensors import hotness
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
    NONE,
    NP_ARRAY,
    NUMBER,
    OTHER,
    SCALAR,
    SEQUENCE,
    STRING,
    TENSOR,
    TRUTH,
    Hashed,
    Items,
    device_of,
    element,
    items,
    join,
    sequence,
)
from syncscope.tensors.frame import Frame, condition, evaluate
from syncscope.tensors.narrowing import learnt

NOTHING_KNOWN = UNKNOWN.kind


def binary_operation(frame: Frame, node: ast.BinOp) -> Fact:
    """`a + b` and its kin."""
    table = frame.table
    left = table[node.left.__class__](frame, node.left)
    right = table[node.right.__class__](frame, node.right)
    if left.kind is NOTHING_KNOWN and right.kind is NOTHING_KNOWN:
        return (
            COMPARED
            if (left is COMPARED or right is COMPARED) and node.op.__class__ in (ast.BitAnd, ast.BitOr)
            else UNKNOWN
        )
    return binary(node, left, right, node.op, frame)


def binary(node: ast.AST, left: Fact, right: Fact, op: ast.operator, frame: Frame | None = None) -> Fact:
    """The result of an arithmetic or bitwise operator."""
    lk, rk = left.kind, right.kind
    if lk is TENSOR or rk is TENSOR:
        one, other = (left, right) if lk is TENSOR else (right, left)
        ok = other.kind
        if one is right and left.ref == "str":  # "..." % tensor
            if frame is not None and op.__class__ is ast.Mod and isinstance(node, ast.BinOp):
                frame.emit("format", node, node.right, right)
            return STRING
        if ok is OTHER and one.confidence < 3:
            return UNKNOWN
        operator = op.__class__
        if operator is ast.Div:
            dtype = FLOAT
        elif one.dtype is other.dtype:
            dtype = one.dtype
            if dtype is BOOL and ok is TENSOR and operator not in (ast.BitAnd, ast.BitOr, ast.BitXor):
                dtype = INT if operator is not ast.Sub else BOOL
            elif dtype is BOOL and operator in (ast.Mult, ast.Add):
                dtype = INT
        elif FLOAT in (one.dtype, other.dtype) and ok in (TENSOR, SCALAR):
            dtype = FLOAT
        elif (one.dtype is INT and other.dtype is BOOL) or (one.dtype is BOOL and other.dtype is INT):
            dtype = INT
        elif ok is SCALAR and other.dtype is INT:
            dtype = one.dtype
        elif operator in (ast.BitAnd, ast.BitOr, ast.BitXor) and BOOL in (one.dtype, other.dtype):
            dtype = BOOL
        else:
            dtype = ANY_DTYPE
        if ok is TENSOR:
            ndim = max(one.ndim, other.ndim) if one.ndim is not None and other.ndim is not None else None
            if operator is ast.MatMult:
                ndim = one.ndim if one.ndim == other.ndim and one.ndim is not None and one.ndim > 1 else None
            return Fact(
                TENSOR,
                dtype,
                device_of(one, other),
                _shape(one, other),
                ndim,
                max(one.confidence, other.confidence),
                node,
                source=_surer(one, other),
            )
        device = one.device if ok is not NOTHING_KNOWN or one.device is not HOST else device_of(one, other)
        return Fact(
            TENSOR, dtype, device, one.shape, one.ndim if ok is SCALAR else None, one.confidence, node, source=one
        )
    if lk is ARRAY or rk is ARRAY:
        return NP_ARRAY
    if lk is SCALAR and rk is SCALAR:
        if left.dtype is right.dtype and left.dtype is INT and op.__class__ not in (ast.Div, ast.Pow):
            return INTEGER
        return NUMBER
    if lk is SEQUENCE and rk is SEQUENCE and op.__class__ is ast.Add:
        if left.elements and right.elements:
            return sequence(left.elements + right.elements)
        return join(left, right)
    if lk is SEQUENCE and op.__class__ is ast.Mult:
        return items(element(left))
    if left.ref == "str" or right.ref == "str":
        if (
            op.__class__ is ast.Mod
            and left.ref == "str"
            and rk is SEQUENCE
            and frame is not None
            and isinstance(node, ast.BinOp)
        ):
            for each in right.elements:
                if each.kind is TENSOR:
                    frame.emit("format", node, node.right, each)
                    break
        return STRING if left.ref == "str" else UNKNOWN
    return UNKNOWN


def _shape(one: Fact, other: Fact) -> Shape:
    if one.shape is other.shape:
        return one.shape
    return DYNAMIC if DYNAMIC in (one.shape, other.shape) else ANY_SHAPE


def _surer(one: Fact, other: Fact) -> Fact:
    return one if one.confidence >= other.confidence else other


def unary_operation(frame: Frame, node: ast.UnaryOp) -> Fact:
    """`-a`, `~a`, `not a`."""
    if node.op.__class__ is ast.Not:
        condition(frame, node.operand)
        return TRUTH
    fact = evaluate(frame, node.operand)
    if fact.kind is TENSOR:
        return Fact(TENSOR, fact.dtype, fact.device, fact.shape, fact.ndim, fact.confidence, node, source=fact)
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
            if right.kind is TENSOR and left.ref != "str":
                frame.emit(
                    "condition", node, right_node, right, 3 if right.confidence == 3 or left.kind is TENSOR else 1
                )
            elif left.kind is TENSOR and right.kind is SEQUENCE and left.confidence > 1 and not _hashed(right):
                frame.emit("condition", node, before, left, 2)
        elif left.kind is TENSOR or right.kind is TENSOR:
            if (left.ref == "str" or right.ref == "str" or left is NONE or right is NONE) or (
                (left.kind is SEQUENCE or right.kind is SEQUENCE) and operator in (ast.Eq, ast.NotEq)
            ):
                result = UNKNOWN
            else:
                result = _compared(node, left, right)
                if position < last:
                    frame.emit("condition", node, before, result)
        elif left.kind is ARRAY or right.kind is ARRAY:
            result = NP_ARRAY
        elif (
            (left.kind is NOTHING_KNOWN and right.kind is NOTHING_KNOWN)
            or left.kind is NOTHING_KNOWN
            or right.kind is NOTHING_KNOWN
        ):
            plain = all(side.kind is NOTHING_KNOWN or side.kind is SCALAR for side in (left, right))
            result = COMPARED if plain and last == 0 else UNKNOWN
        elif left.kind is SEQUENCE and right.kind is SEQUENCE and operator in (ast.Eq, ast.NotEq):
            result = TRUTH
            for side, at in ((left, before), (right, right_node)):
                each = next((e for e in side.elements if e.kind is TENSOR), None)
                if each is not None:
                    frame.emit("condition", node, at, each)
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
        return Fact(
            TENSOR,
            BOOL,
            device_of(one, other),
            _shape(one, other),
            ndim,
            max(one.confidence, other.confidence),
            node,
            source=_surer(one, other),
        )
    ndim = one.ndim if other.kind is SCALAR else None
    return Fact(TENSOR, BOOL, one.device, one.shape, ndim, one.confidence, node, source=one)


def boolean_operation(frame: Frame, node: ast.BoolOp) -> Fact:
    """`a and b` as a value: all operands but the last are asked for their truth."""
    *first, last = node.values
    result: Fact | None = None
    env = frame.env
    for value in first:
        fact = condition(frame, value)
        when, otherwise = learnt(frame, value)
        more = when if node.op.__class__ is ast.And else otherwise
        if more:
            frame.env = {**frame.env, **more}
        result = fact if result is None else join(result, fact)
    fact = evaluate(frame, last)
    frame.env = env
    return join(result, fact) if result is not None else fact


def truth_of(frame: Frame, node: ast.expr) -> Fact:
    """The truth of `a and b`: the last operand is asked as well."""
    if isinstance(node, ast.BoolOp):
        env = frame.env
        guarded = frame.guarded
        for value in node.values:
            truth_of(frame, value)
            frame.guarded = frame.guarded or hotness.special(value)
            when, otherwise = learnt(frame, value)
            more = when if node.op.__class__ is ast.And else otherwise
            if more:
                frame.env = {**frame.env, **more}
        frame.env, frame.guarded = env, guarded
        return TRUTH
    return condition(frame, node)
