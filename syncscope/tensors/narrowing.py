"""Narrowing: what holds of names where a test came out true, and where it came out false."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact, Value
from syncscope.project.modules import Class
from syncscope.project.syntax import dotted, last_word
from syncscope.tensors.facts import (
    ANY_DTYPE,
    ARRAY,
    BOOL,
    HOST,
    NO_TENSOR,
    NUMBER,
    OTHER,
    SCALAR,
    SEQUENCE,
    TENSOR,
    Items,
    Tag,
    tensor,
)
from syncscope.tensors.frame import Frame, evaluate
from syncscope.tensors.instances import is_tensor

Env = dict[str, Fact]


def constant(frame: Frame, test: ast.expr) -> bool | None:
    """The truth of a test that the facts decide: isinstance of something known, torch.is_tensor of a tensor."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = constant(frame, test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.Call) and test.args and isinstance(test.func, (ast.Name, ast.Attribute)):
        word = test.func.id if isinstance(test.func, ast.Name) else test.func.attr
        if word == "isinstance" and len(test.args) == 2:
            fact = frame.env.get(dotted(test.args[0]))
            of = kinds_of(frame, test.args[1])
            if fact is not None and fact.confidence >= 2 and UNKNOWN.kind not in of:
                if fact.kind is TENSOR and (TENSOR in of or fact.confidence == 3):
                    return TENSOR in of
                if fact.confidence == 3 and fact.kind in (SCALAR, ARRAY, SEQUENCE) and of == {TENSOR}:
                    return False
        elif word in ("is_tensor", "is_torch_tensor"):
            fact = frame.env.get(dotted(test.args[0]))
            if fact is not None and fact.kind is TENSOR and fact.confidence >= 2:
                return True
    return None


def rare_arms(frame: Frame, test: ast.expr) -> tuple[bool, bool]:
    """Whether the arm taken where a test holds, and the other one, are for special values or for what is empty."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(rare_arms(frame, each)[0] for each in test.values), False
    asked = empty(frame, test)
    named = frame.env.get(test.id) if isinstance(test, ast.Name) else None
    if named is not None and isinstance(named.ref, (ast.Compare, ast.BoolOp)):
        return special(named.ref), False
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


def kinds_of(frame: Frame, node: ast.expr) -> set[Value]:
    """What `isinstance` asks for; UNKNOWN is among it where that is not known."""
    parts: list[ast.expr] = [node]
    found: set[Value] = set()
    while parts:
        part = parts.pop()
        if isinstance(part, ast.Tuple):
            parts.extend(part.elts)
        elif isinstance(part, ast.BinOp):
            parts.extend([part.left, part.right])
        elif isinstance(part, ast.Call):  # `isinstance(x, type(y))`
            found.add(OTHER if isinstance(part.func, ast.Name) and part.func.id == "type" else UNKNOWN.kind)
        else:
            fact = evaluate(frame, part)
            found.update(map(_kind_of_class, fact.elements or [fact]))  # `NUMBERS = (int, float)`, further up
    return found


def _kind_of_class(fact: Fact) -> Value:
    ref = fact.ref
    if not isinstance(ref, str):
        return TENSOR if isinstance(ref, Class) and is_tensor(ref) else UNKNOWN.kind
    word = ref.rpartition(".")[2]
    if ref.startswith("torch.") and (word.endswith("Tensor") or word in ("Parameter", "Buffer")):
        return TENSOR
    if ref.startswith("builtins."):
        return _PYTHONS.get(word, OTHER)
    if ref.startswith("numpy"):
        return ARRAY
    if ref.startswith("numbers.") or word == "Number":
        return SCALAR
    if word == "Tensor":
        return TENSOR
    return OTHER if ref.startswith(("torch.", "collections", "typing")) else UNKNOWN.kind


_PYTHONS = {
    **dict.fromkeys(("int", "float", "bool", "complex"), SCALAR),
    **dict.fromkeys(("list", "tuple", "dict", "set"), SEQUENCE),
}


def learnt(frame: Frame, test: ast.expr) -> tuple[Env, Env]:
    """What holds of names when a test is true, and when it is false."""
    kind = test.__class__
    if kind is ast.Name:
        asked = frame.env.get(test.id)  # type: ignore[attr-defined]  # checked by class, which is faster than isinstance
        made = asked.ref if asked is not None and asked.kind is SCALAR else None
        return learnt(frame, made) if isinstance(made, ast.Call) else ({}, {})
    if kind is ast.Compare or kind is ast.Attribute:
        counted = _counted(frame, test) if kind is ast.Compare else None  # type: ignore[arg-type]  # checked by class
        return _placed(frame, test) if counted is None else counted
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        when, otherwise = learnt(frame, test.operand)
        return otherwise, when
    if isinstance(test, ast.BoolOp):
        parts = [learnt(frame, each) for each in test.values]
        both: Env = {}
        side = 0 if isinstance(test.op, ast.And) else 1
        for part in parts:
            both.update(part[side])
        return (both, {}) if side == 0 else ({}, both)
    if isinstance(test, ast.Call) and isinstance(test.func, (ast.Name, ast.Attribute)) and test.args:
        word = test.func.id if isinstance(test.func, ast.Name) else test.func.attr
        name = dotted(test.args[0])
        if not name:
            return {}, {}
        if word == "isscalar":
            return {name: NUMBER}, {}
        if word in ("is_tensor", "is_torch_tensor"):
            return {name: proved(frame, name, test)}, {name: _no_tensor(frame, name)}
        if word == "isinstance" and len(test.args) == 2:
            of = kinds_of(frame, test.args[1])
            if of == {TENSOR}:
                return {name: proved(frame, name, test)}, {name: _no_tensor(frame, name)}
            if TENSOR not in of and UNKNOWN.kind not in of:
                now = frame.env.get(name) or evaluate(frame, test.args[0])
                rest = {}
                if now.kind is TENSOR and now.confidence == 1 and of <= _BESIDE:
                    rest = {name: now.but(confidence=2)}
                elif (
                    now.kind is TENSOR and now.confidence > 1 and of == {OTHER} and _is_text(frame, name, test.args[1])
                ):
                    rest = {name: now.but(confidence=1)}
                if of == {SCALAR}:
                    return {name: NUMBER}, rest
                if now.kind is TENSOR:
                    return {name: Fact(OTHER, confidence=3, ref=Tag.NO_TENSOR)}, rest
    return {}, {}


def _is_text(frame: Frame, name: str, asked: ast.expr) -> bool:
    """Whether a value that the function found somewhere may be a text, whatever is said of what it was found in."""
    return isinstance(asked, ast.Name) and asked.id == "str" and not (frame.function and name in frame.function.names)


_BESIDE = {SCALAR, ARRAY}  # what is taken beside tensors: what is guessed to be one, and is none of these, is one


def _counted(frame: Frame, test: ast.Compare) -> tuple[Env, Env] | None:
    """What `x.dim() == 2`, `x.ndim != 1` and `len(x.shape) == 4` say of the dimensions of x; None: it asks something else."""
    number, op = test.comparators[0], test.ops[0]
    if len(test.ops) != 1 or not (isinstance(number, ast.Constant) and type(number.value) is int):
        return None
    match test.left:
        case (
            ast.Call(func=ast.Attribute(value=of, attr="dim" | "ndimension"), args=[])
            | ast.Attribute(value=of, attr="ndim")
        ):
            pass
        case ast.Call(func=ast.Name(id="len"), args=[ast.Attribute(value=of, attr="shape")]):
            pass
        case _:
            return None
    name = dotted(of)
    fact = frame.env.get(name)
    if fact is None or fact.kind is not TENSOR:
        return {}, {}
    known = {name: fact.but(ndim=number.value)}
    if isinstance(op, ast.Eq):
        return known, {}
    return ({}, known) if isinstance(op, ast.NotEq) else ({}, {})


def _placed(frame: Frame, test: ast.expr) -> tuple[Env, Env]:
    """What `x.is_cuda` and `x.device.type == "cpu"` say of where x lives."""
    node: ast.expr = test
    host_when = False  # that it is not on the host says nothing new
    if isinstance(test, ast.Compare):
        kind = test.comparators[0]
        node = test.left
        if isinstance(node, ast.Attribute) and node.attr == "type":
            node = node.value
        if len(test.ops) != 1 or not (isinstance(node, ast.Attribute) and node.attr == "device"):
            if isinstance(node, ast.Attribute) and node.attr == "dtype" and last_word(kind) == "bool":
                return _masked(frame, node, test.ops[0])
            return {}, {}
        word = kind.value if isinstance(kind, ast.Constant) else ""
        if word == "cpu" and isinstance(test.ops[0], ast.Eq):
            host_when = True
        elif not (word == "cpu" and isinstance(test.ops[0], ast.NotEq)):
            return {}, {}
    elif not (isinstance(test, ast.Attribute) and test.attr == "is_cuda"):
        return {}, {}
    assert isinstance(node, ast.Attribute)
    name = dotted(node.value)
    fact = frame.env.get(name)
    if fact is None or fact.kind is not TENSOR:
        return {}, {}
    placed = {name: fact.but(device=HOST)}
    return (placed, {}) if host_when else ({}, placed)


def _masked(frame: Frame, node: ast.Attribute, op: ast.cmpop) -> tuple[Env, Env]:
    """What `x.dtype == torch.bool` says of x: a mask where it holds, and that it may be either elsewhere."""
    name = dotted(node.value)
    fact = frame.env.get(name)
    if fact is None or fact.kind is not TENSOR or fact.dtype is not ANY_DTYPE:
        return {}, {}
    frame.either |= {name}
    known = {name: fact.but(dtype=BOOL)}
    return (known, {}) if isinstance(op, ast.Eq) else ({}, known) if isinstance(op, ast.NotEq) else ({}, {})


def proved(frame: Frame, name: str, test: ast.expr) -> Fact:
    """A name that a test has shown to be a tensor."""
    now = frame.env.get(name, UNKNOWN)
    if now.kind is TENSOR:
        return (
            now
            if now.confidence == 3
            else Fact(TENSOR, now.dtype, now.device, now.shape, now.ndim, 3, test, source=now)
        )
    return tensor(confidence=3, why=test)


def _no_tensor(frame: Frame, name: str) -> Fact:
    now = frame.env.get(name, UNKNOWN)
    if now.kind is UNKNOWN.kind:
        return NO_TENSOR
    return UNKNOWN if now.kind is not TENSOR else Fact(OTHER, confidence=1, ref=Tag.NO_TENSOR)


def special(test: ast.expr) -> bool:
    """Whether what follows a test is for special values: another kind of device, one precision, a tensor of one number."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(map(special, test.values))
    if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Eq, ast.In))):
        return False
    kind, left = test.comparators[0], test.left
    if isinstance(left, ast.Attribute) and left.attr == "dtype":
        return True
    if isinstance(left, ast.Call) and isinstance(left.func, ast.Attribute) and left.func.attr == "numel":
        return isinstance(kind, ast.Constant) and kind.value == 1
    named = isinstance(kind, ast.Constant) and kind.value in ("cpu", "mps", "xla", "npu", "hpu", "mlu", "dml", "meta")
    return named and "device" in ast.unparse(left)
