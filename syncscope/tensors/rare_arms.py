"""Arms that are seldom gone into: for special values, and for what is empty."""

from __future__ import annotations

import ast

from syncscope.project.syntax import dotted, last_word
from syncscope.tensors.facts import SEQUENCE, TENSOR, Items, Tag
from syncscope.tensors.frame import Frame
from syncscope.tensors.guards import named


def rare_arms(frame: Frame, test: ast.expr) -> tuple[bool, bool]:
    """Whether the arm taken where a test holds, and the other one, are for special values or for what is empty."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(rare_arms(frame, each)[0] for each in test.values), False
    asked = empty(frame, test)
    if isinstance(test, ast.Name) and (before := named(frame, test)) is not test:
        return special(before), False
    return asked is True or special(test), asked is False


def empty(frame: Frame, test: ast.expr) -> bool | None:
    """Whether a test asks if something is empty: True: then it is; False: then it is not; None: it asks something else."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = empty(frame, test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.Compare):
        bound = test.comparators[0]
        if isinstance(bound, ast.Constant) and bound.value in (0, 1) and _counts(frame, test.left):
            return _EMPTY.get((type(test.ops[0]), bound.value))
        return None
    return (
        False
        if (isinstance(test, ast.Name) and _list(frame, test) and frame.env[test.id].kind is SEQUENCE)
        or _counts(frame, test)
        else None
    )


_EMPTY: dict[tuple[type, object], bool] = {
    (ast.Eq, 0): True,
    (ast.Lt, 1): True,
    (ast.LtE, 0): True,
    (ast.Gt, 0): False,
    (ast.NotEq, 0): False,
    (ast.GtE, 1): False,
}


def _counts(frame: Frame, node: ast.expr) -> bool:
    """`x.numel()`, `x.size(0)`, `x.shape[0]`, and `len(x)` of a tensor or a list: an empty dict is often but a new one."""
    if isinstance(node, ast.Call):
        func = node.func
        if isinstance(func, ast.Attribute):
            return func.attr in ("numel", "nelement") or (func.attr == "size" and len(node.args) == 1)
        return isinstance(func, ast.Name) and func.id == "len" and len(node.args) == 1 and _list(frame, node.args[0])
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape"


def _list(frame: Frame, node: ast.expr) -> bool:
    fact = frame.env.get(dotted(node))
    if fact is None:
        return False
    return fact.kind is TENSOR or (
        fact.kind is SEQUENCE
        and fact.ref is not Tag.SIZE
        and not (isinstance(fact.ref, Items) and fact.ref.keys is not None)
    )


def special(test: ast.expr) -> bool:
    """Whether what follows a test is for special values: another kind of device, one precision, a tensor of one number,
    a gradient that is sparse."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(map(special, test.values))
    if isinstance(test, ast.Attribute):
        return test.attr == "is_sparse" and "grad" in last_word(test.value)
    if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Eq, ast.In))):
        return False
    kind, left = test.comparators[0], test.left
    if isinstance(left, ast.Attribute) and left.attr == "dtype":
        return True
    if isinstance(left, ast.Call) and isinstance(left.func, ast.Attribute) and left.func.attr == "numel":
        return isinstance(kind, ast.Constant) and kind.value == 1
    named = isinstance(kind, ast.Constant) and kind.value in ("cpu", "mps", "xla", "npu", "hpu", "mlu", "dml", "meta")
    return named and "device" in ast.unparse(left)
