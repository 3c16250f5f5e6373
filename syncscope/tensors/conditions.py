"""Conditions: where Python asks for the truth of a value, a tensor is read."""

from __future__ import annotations

import ast

from syncscope.model.fact import Fact
from syncscope.model.ops import Op
from syncscope.tensors.facts import BOOL, COMPARED, TENSOR, TRUTH, tensor
from syncscope.tensors.frame import Frame
from syncscope.tensors.guards import behind
from syncscope.tensors.narrowing import learnt
from syncscope.tensors.rare_arms import special


def condition(frame: Frame, node: ast.expr) -> Fact:
    """An expression whose truth Python asks for: a tensor is read."""
    if isinstance(node, ast.BoolOp):
        return _all_asked(frame, node)
    fact = frame.table[node.__class__](frame, node)
    if fact.confidence == 1 and fact.dtype is BOOL and node.__class__ is ast.BinOp and frame.alone:
        fact = fact.but(confidence=2)  # comparisons of numbers are combined with `and`
    if fact.kind is TENSOR and (fact.confidence > 1 or node.__class__ not in (ast.Name, ast.Attribute)):
        frame.emit(Op.CONDITION, node, node, fact)  # a name that is only guessed to be a tensor is more often a flag
    elif fact is COMPARED and node.__class__ is ast.BinOp:
        guess = tensor(BOOL, confidence=2 if frame.alone else 1, why=node)  # of numbers people say `and`
        frame.emit(Op.CONDITION, node, node, guess)
    return fact


def _all_asked(frame: Frame, node: ast.BoolOp) -> Fact:
    """The truth of `a and b`: the last operand is asked as well."""
    env, guarded, around = frame.env, frame.guarded, frame.around
    for value in node.values:
        condition(frame, value)
        if frame.waits is not None:
            frame.around = behind(frame, value, node.op)
        frame.guarded = frame.guarded or special(value) or one_object(node, value)
        when, otherwise = learnt(frame, value)
        more = when if node.op.__class__ is ast.And else otherwise
        if more:
            frame.env = {**frame.env, **more}
    frame.env, frame.guarded, frame.around = env, guarded, around
    return TRUTH


def one_object(node: ast.BoolOp, value: ast.expr) -> bool:
    """Whether what follows is asked only where two are not one object, `a is b or torch.equal(a, b)`: seldom."""
    match value:
        case ast.Compare(ops=[ast.Is()], comparators=[other]):
            return isinstance(node.op, ast.Or) and not isinstance(other, ast.Constant)
    return False
