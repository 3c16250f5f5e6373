"""What `isinstance` asks for, and what a value is of which it holds."""

from __future__ import annotations

import ast
from functools import reduce

from syncscope.model.fact import UNKNOWN, Fact, Value
from syncscope.project.modules import Class
from syncscope.tensors.annotations import meaning
from syncscope.tensors.facts import (
    ARRAY,
    NP_ARRAY,
    OTHER,
    SCALAR,
    SEQUENCE,
    TENSOR,
    Hashed,
    items,
    listed,
)
from syncscope.tensors.frame import Frame, evaluate
from syncscope.tensors.instances import is_tensor
from syncscope.tensors.joins import join

_TYPE = Fact(OTHER, confidence=3, ref="type")  # `type(y)`: nobody knows which, and of a tensor people say its name
_SET = Fact(SEQUENCE, ref=Hashed())
_CONTAINERS = {
    "list": listed(UNKNOWN),
    "tuple": items(UNKNOWN),
    "dict": items(UNKNOWN, {}),
    "set": _SET,
    "frozenset": _SET,
}
_PYTHONS = {
    **dict.fromkeys(("int", "float", "bool", "complex"), SCALAR),
    **dict.fromkeys(("list", "tuple", "dict", "set"), SEQUENCE),
}


def classes_of(frame: Frame, node: ast.expr) -> list[Fact]:
    """The classes that `isinstance` is given: one, a tuple of them, `int | float`; UNKNOWN for each that is not known."""
    parts: list[ast.expr] = [node]
    found: list[Fact] = []
    while parts:
        part = parts.pop()
        if isinstance(part, ast.Tuple):
            parts.extend(part.elts)
        elif isinstance(part, ast.BinOp):
            parts.extend([part.left, part.right])
        elif isinstance(part, ast.Call):
            found.append(_TYPE if isinstance(part.func, ast.Name) and part.func.id == "type" else UNKNOWN)
        else:
            fact = evaluate(frame, part)
            found.extend(fact.elements or [fact])  # `NUMBERS = (int, float)`, further up
    return found


def kind_of(fact: Fact) -> Value:
    """What an object of a class is; UNKNOWN where the class is not known."""
    ref = fact.ref
    if not isinstance(ref, str):
        return TENSOR if isinstance(ref, Class) and is_tensor(ref) else UNKNOWN.kind
    word = ref.rpartition(".")[2]
    if ref.startswith("torch.") and (word.endswith("Tensor") or word in ("Parameter", "Buffer")):
        return TENSOR
    if ref.startswith("builtins."):
        return _PYTHONS.get(word, OTHER)
    if ref.startswith("numpy"):
        return SCALAR if word in ("number", "integer", "floating") else ARRAY
    if ref.startswith("numbers.") or word == "Number":
        return SCALAR
    if word == "Tensor":
        return TENSOR
    return OTHER if fact is _TYPE or ref.startswith(("torch.", "collections", "typing")) else UNKNOWN.kind


def object_of(classes: list[Fact]) -> Fact:
    """What is known of an object of one of these classes; UNKNOWN where that is nothing."""
    each = [_object(one) for one in classes]
    return reduce(join, each) if len({one.kind for one in each}) == 1 else UNKNOWN


def _object(fact: Fact) -> Fact:
    ref = fact.ref
    if isinstance(ref, str):
        if ref.startswith("builtins."):
            known = _CONTAINERS.get(ref.rpartition(".")[2])
            if known is not None:
                return known
        elif ref.startswith("numpy"):
            return NP_ARRAY if ref.endswith(".ndarray") else UNKNOWN
    return meaning(fact)
