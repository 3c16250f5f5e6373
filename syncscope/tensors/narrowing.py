"""Narrowing: what holds of names where a test came out true, and where it came out false."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from syncscope.model.fact import UNKNOWN, Dtype, Fact, Value
from syncscope.project.private_names import is_private
from syncscope.project.syntax import dotted, last_word, name_of
from syncscope.tensors.asked_types import classes_of, kind_of, object_of
from syncscope.tensors.facts import (
    ANY_DTYPE,
    ARRAY,
    BOOL,
    FLOAT,
    HOST,
    NO_TENSOR,
    NONE,
    NOTHING_KNOWN,
    NUMBER,
    OTHER,
    SCALAR,
    SEQUENCE,
    TENSOR,
    Either,
    Tag,
    items,
)
from syncscope.tensors.frame import Frame, evaluate
from syncscope.tensors.guards import Asked
from syncscope.tensors.joins import if_given, join
from syncscope.tensors.of_a_batch import of_a_batch
from syncscope.tensors.torch.signatures import DTYPE_NAMED

Env = dict[str, Fact]
NOTHING: tuple[Env, Env] = ({}, {})


def constant(frame: Frame, test: ast.expr) -> bool | None:
    """The truth of a test that is written out, `if False`, or that the facts decide: isinstance of something known,
    torch.is_tensor of a tensor.
    """
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = constant(frame, test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.Call) and test.args and isinstance(test.func, (ast.Name, ast.Attribute)):
        return _told_by_call(frame, test)
    if frame.inlined and isinstance(test, ast.Compare):
        return _told_of_none(frame, test)
    return None


def _told_by_call(frame: Frame, test: ast.Call) -> bool | None:
    """`isinstance(x, Tensor)`, `torch.is_tensor(x)`, of what is known."""
    word = name_of(test.func)
    if word not in _ASKS_FOR_TENSOR and not (word == "isinstance" and len(test.args) == 2):
        return None
    fact = frame.env.get(_named(test.args[0]))
    if fact is None or fact.confidence < 2:  # of most nothing is known
        return None
    if of_a_batch(fact):  # which may hold lists of tensors beside tensors
        return None
    if fact.kind is TENSOR and _is_as_given(frame, test.args[0], fact):
        return None
    if word != "isinstance":
        return True if fact.kind is TENSOR else None
    of = set(map(kind_of, classes_of(frame, test.args[1])))
    if NOTHING_KNOWN in of:
        return None
    if fact.kind is TENSOR and (TENSOR in of or fact.confidence == 3):
        return TENSOR in of
    return False if fact.confidence == 3 and fact.kind in (SCALAR, ARRAY, SEQUENCE) and of == {TENSOR} else None


def _told_of_none(frame: Frame, test: ast.Compare) -> bool | None:
    """`x is None`, of what this very call leaves out, or passes a tensor for."""
    asked = frame.env.get(_named(test.left))
    left_out = asked is NONE
    if not left_out and (asked is None or asked.kind is not TENSOR or asked.confidence < 2):
        return None
    is_none = isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
    return {ast.Is: left_out, ast.IsNot: not left_out}.get(type(test.ops[0])) if is_none else None


def _is_as_given(frame: Frame, node: ast.expr, fact: Fact) -> bool:
    """Whether a parameter is asked about, whatever is announced and callers in its file pass: who asks was given both.

    Of a call that is followed, of a private function whose callers surely pass one, and of what it was given here, it is known.
    """
    function = frame.function
    if function is None or frame.inlined or not isinstance(node, ast.Name) or node.id not in function.names:
        return False
    if fact.ref in (Tag.PROVED, Tag.PERHAPS_OF_HOST):
        return False
    passed, made = function.passed.get(node.id), getattr(fact.provenance, "lineno", 0)
    known = passed is not None and passed.confidence == 3 and is_private(function.name)
    return not known and not function.node.lineno <= made <= (function.node.end_lineno or 0)


def learnt(frame: Frame, test: ast.expr) -> tuple[Env, Env]:
    """What holds of names when a test is true, and when it is false."""
    told = _TELLING.get(test.__class__)
    return told(frame, test) if told is not None else NOTHING


def _asked_before(frame: Frame, test: ast.Name) -> tuple[Env, Env]:
    asked = frame.env.get(test.id)
    made = asked.ref if asked is not None and asked.kind is SCALAR else None
    return learnt(frame, made.test) if isinstance(made, Asked) and made.holds(frame.env) else NOTHING


def _negated(frame: Frame, test: ast.UnaryOp) -> tuple[Env, Env]:
    if test.op.__class__ is not ast.Not:
        return NOTHING
    when, otherwise = learnt(frame, test.operand)
    return otherwise, when


def _named(node: ast.expr) -> str:
    """The name of what is asked about, given to it in the test or before."""
    return dotted(node.target if isinstance(node, ast.NamedExpr) else node)


def _together(frame: Frame, test: ast.BoolOp) -> tuple[Env, Env]:
    """`a and b`: where it holds both do, each asked of what those before it tell; where not, what any of them tells alike."""
    side = 0 if isinstance(test.op, ast.And) else 1
    env, told, others = frame.env, Env(), []
    for part in test.values:
        said = learnt(frame, part)
        others.append(said[1 - side])
        if said[side]:
            told.update(said[side])
            frame.env = {**frame.env, **said[side]}
    frame.env = env
    alike: Env = {}
    for name, fact in others[0].items():
        each = [other.get(name, UNKNOWN) for other in others]
        if all(one.kind is fact.kind for one in each):
            for one in each[1:]:
                fact = join(fact, one)
            alike[name] = fact
    return (told, alike) if side == 0 else (alike, told)


_ASKS_FOR_TENSOR = ("is_tensor", "is_torch_tensor")


def _called(frame: Frame, test: ast.Call) -> tuple[Env, Env]:
    """`isinstance(x, Tensor)`, `torch.is_tensor(x)`, `x.is_floating_point()`."""
    func = test.func
    if not isinstance(func, (ast.Name, ast.Attribute)):
        return NOTHING
    word = func.id if isinstance(func, ast.Name) else func.attr
    if word == "is_floating_point":
        return _of_dtype(frame, test.args[0] if test.args else getattr(func, "value", func), FLOAT, ast.Eq)
    if not test.args:
        return NOTHING
    name = _named(test.args[0])
    if not name:
        return NOTHING
    if word == "isscalar":
        return {name: NUMBER}, {}
    if word in _ASKS_FOR_TENSOR:
        return {name: proved(frame, name, test)}, {name: _no_tensor(frame, name)}
    if word == "isinstance" and len(test.args) == 2:
        return _instance(frame, test.args[0], test.args[1], test)
    return NOTHING


def _instance(frame: Frame, node: ast.expr, types: ast.expr, test: ast.expr) -> tuple[Env, Env]:
    """What `isinstance(x, types)` says of x."""
    name, classes = _named(node), classes_of(frame, types)
    of = set(map(kind_of, classes))
    if of == {TENSOR}:
        return {name: proved(frame, name, test)}, {name: _no_tensor(frame, name)}
    if TENSOR in of or NOTHING_KNOWN in of:
        return NOTHING
    now = frame.env.get(name) or evaluate(frame, node)
    said = _proved_number(NUMBER) if of == {SCALAR} else object_of(classes)
    if now.kind is TENSOR:
        either = now.ref.facts if isinstance(now.ref, Either) else ()
        announced = [one for one in either if one.kind in of]
        if len(announced) == 1:
            said = _proved_number(announced[0])
        elif of == {SEQUENCE} and of_a_batch(now):
            said = items(now)  # several of those
        elif said.kind is NOTHING_KNOWN:
            said = Fact(OTHER, confidence=3, ref=Tag.NO_TENSOR)
        return {name: said}, _rest(frame, name, now, of, types)
    return ({name: said}, {}) if said.kind is SCALAR or now.kind is NOTHING_KNOWN is not said.kind else NOTHING


def _rest(frame: Frame, name: str, now: Fact, of: set[Value], types: ast.expr) -> Env:
    """What is known of what may be a tensor where it is none of these."""
    if now.confidence == 1:
        left = [one for one in now.ref.facts if one.kind not in of] if isinstance(now.ref, Either) else []
        if of <= _BESIDE or (left and all(one.kind is TENSOR for one in left)):
            return {name: now.but(confidence=2)}
    elif of == {OTHER} and isinstance(types, ast.Name) and types.id == "str" and not _is_given(frame, name):
        return {name: now.but(confidence=1)}  # it may be a text, whatever is said of what it was found in
    return {}


_BESIDE = {SCALAR, ARRAY}  # what is taken beside tensors: what is guessed to be one, and is none of these, is one


def _is_given(frame: Frame, name: str) -> bool:
    return frame.function is not None and name in frame.function.names


def _compared(frame: Frame, test: ast.Compare) -> tuple[Env, Env]:
    """`x.dim() == 2`, `type(x) is Tensor`, `x.dtype == torch.bool`, `x.device.type == "cpu"`."""
    if len(test.ops) != 1:
        return NOTHING
    left, op, right = test.left, type(test.ops[0]), test.comparators[0]
    if left.__class__ in (ast.Name, ast.Attribute) and op in (ast.Is, ast.IsNot):
        if not (isinstance(right, ast.Constant) and right.value is None and (name := dotted(left))):
            return NOTHING
        fact = frame.env.get(name) or (evaluate(frame, left) if left.__class__ is ast.Attribute else UNKNOWN)
        if fact.ref is not Tag.OR_NONE:
            return NOTHING
        there = if_given(fact).but(device=fact.device)
        return ({}, {name: there}) if op is ast.Is else ({name: there}, {})
    if left.__class__ not in (ast.Attribute, ast.Call):  # most are names: no pattern needs to be tried
        return NOTHING
    match left:
        case ast.Attribute(value=of, attr="ndim") | ast.Call(func=ast.Attribute(value=of, attr="dim" | "ndimension")):
            return _counted(frame, of, right, op)
        case ast.Call(func=ast.Name(id="len"), args=[ast.Attribute(value=of, attr="shape")]):
            return _counted(frame, of, right, op)
        case ast.Call(func=ast.Name(id="len"), args=[ast.Call(func=ast.Attribute(value=of, attr="size"), args=[])]):
            return _counted(frame, of, right, op)
        case ast.Call(func=ast.Name(id="type"), args=[of]) if _named(of):
            when, _ = _instance(frame, of, right, test)  # of another type it may still be one that derives from it
            return (when, {}) if op in (ast.Is, ast.Eq, ast.In) else ({}, when)
        case ast.Attribute(value=of, attr="dtype") if (dtype := DTYPE_NAMED.get(last_word(right))) is not None:
            return _of_dtype(frame, of, dtype, op)
        case (
            ast.Attribute(value=ast.Attribute(value=of, attr="device"), attr="type")
            | ast.Attribute(value=of, attr="device")
        ):
            word = right.value if isinstance(right, ast.Constant) else ""
            if word in ("cpu", "cuda"):
                same, other = _sides(_on_host(frame, of), op)
                return (same, other) if word == "cpu" else (other, same)
    return NOTHING


def _sides(known: Env, op: type[ast.cmpop]) -> tuple[Env, Env]:
    """What holds where two are equal, on the side where they are."""
    return (known, {}) if op is ast.Eq else ({}, known) if op is ast.NotEq else NOTHING


def _counted(frame: Frame, of: ast.expr, number: ast.expr, op: type[ast.cmpop]) -> tuple[Env, Env]:
    """How many dimensions x has."""
    name = dotted(of)
    fact = frame.env.get(name)
    if fact is None or fact.kind is not TENSOR or not isinstance(number, ast.Constant) or type(number.value) is not int:
        return NOTHING
    return _sides({name: fact.but(ndim=number.value)}, op)


def _placed(frame: Frame, test: ast.Attribute) -> tuple[Env, Env]:
    """What `x.is_cuda` and `x.is_cpu` say of where x lives: that it is not on the host is nothing new."""
    if test.attr == "is_cpu":
        return _on_host(frame, test.value), {}
    return ({}, _on_host(frame, test.value)) if test.attr == "is_cuda" else NOTHING


def _on_host(frame: Frame, of: ast.expr) -> Env:
    name = dotted(of)
    fact = frame.env.get(name)
    return {name: fact.but(device=HOST)} if fact is not None and fact.kind is TENSOR else {}


def _of_dtype(frame: Frame, of: ast.expr, dtype: Dtype, op: type[ast.cmpop]) -> tuple[Env, Env]:
    """What `x.dtype == torch.bool` says of x: a mask where it holds, and that it may be either elsewhere."""
    name = dotted(of)
    fact = frame.env.get(name)
    if fact is None or fact.kind is not TENSOR or fact.dtype is not ANY_DTYPE:
        return NOTHING
    if dtype is BOOL:
        frame.either |= {name}
    return _sides({name: fact.but(dtype=dtype)}, op)


def proved(frame: Frame, name: str, test: ast.expr) -> Fact:
    """A name that a test has shown to be a tensor."""
    now = frame.env.get(name, UNKNOWN)
    if now.kind is not TENSOR:
        return Fact(TENSOR, confidence=3, why=test, ref=Tag.PROVED)
    if isinstance(now.ref, Either) and any(one.kind is SCALAR for one in now.ref.facts):
        return now.but(confidence=0)  # mostly given as a number, as long as nobody here passes a tensor
    ref = Tag.PROVED if now.ref in (None, Tag.ROW) or isinstance(now.ref, Either) else now.ref
    if now.confidence == 3:
        return Fact(TENSOR, now.dtype, now.device, now.shape, now.ndim, 3, now.provenance, ref=ref, source=now.source)
    return Fact(TENSOR, now.dtype, now.device, now.shape, now.ndim, 3, test, ref=ref, source=now)


def _proved_number(fact: Fact) -> Fact:
    """What a test has shown: where it is a number, that it is nothing else."""
    return Fact(SCALAR, fact.dtype, HOST, confidence=3, ref=Tag.PROVED) if fact.kind is SCALAR else fact


def _no_tensor(frame: Frame, name: str) -> Fact:
    now = frame.env.get(name, UNKNOWN)
    if now.kind is NOTHING_KNOWN:
        return NO_TENSOR
    if now.kind is not TENSOR:
        return UNKNOWN
    left = [one for one in now.ref.facts if one.kind is not TENSOR] if isinstance(now.ref, Either) else []
    return _proved_number(left[0]) if len(left) == 1 else Fact(OTHER, confidence=1, ref=Tag.NO_TENSOR)


_TELLING: dict[type, Callable[[Frame, Any], tuple[Env, Env]]] = {
    ast.Compare: _compared,
    ast.Name: _asked_before,
    ast.Attribute: _placed,
    ast.UnaryOp: _negated,
    ast.BoolOp: _together,
    ast.Call: _called,
}
