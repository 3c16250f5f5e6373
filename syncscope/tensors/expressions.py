"""Expressions: what each gives, and where Python itself asks a tensor for its value."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.ops import Op
from syncscope.project import conventions
from syncscope.project.modules import Module
from syncscope.project.names import lookup, member, named
from syncscope.project.syntax import dotted
from syncscope.tensors.attributes import attribute
from syncscope.tensors.bindings import bind
from syncscope.tensors.calls import call
from syncscope.tensors.conditions import condition
from syncscope.tensors.displays import collection, comprehension, dict_comprehension, dictionary
from syncscope.tensors.facts import (
    ANY_DTYPE,
    ARRAY,
    BATCH,
    BOOL,
    DEVICE,
    FLOAT,
    FLOATING,
    HOST,
    INT,
    INTEGER,
    MODULE,
    NO_TENSOR,
    NONE,
    NOTHING_KNOWN,
    NP_ARRAY,
    NUMBER,
    OTHER,
    SEQUENCE,
    SIZE,
    SPREAD,
    STRING,
    TENSOR,
    THING,
    TRUTH,
    Items,
    Tag,
    items,
    like,
    listed,
    parameter,
    spread,
    tensor,
)
from syncscope.tensors.frame import Frame, Later, evaluate, heat_of
from syncscope.tensors.guards import of_test, of_unmet
from syncscope.tensors.joins import element, join
from syncscope.tensors.libraries import fastai, numpy, torch_geometric, transformers
from syncscope.tensors.narrowing import constant as decided
from syncscope.tensors.narrowing import learnt
from syncscope.tensors.operators import binary_operation, boolean_operation, comparison, unary_operation
from syncscope.tensors.rare_arms import rare_arms
from syncscope.tensors.subscripts import subscript
from syncscope.tensors.usage import usage_of

_TYPES = {int: INTEGER, float: FLOATING, bool: TRUTH, str: STRING, bytes: STRING, complex: NUMBER, type(None): NONE}
_CUDA = Fact(OTHER, device=DEVICE, confidence=3, ref=Tag.DEVICE)
_TENSOR_ATTRIBUTES = frozenset("T mT H mH data grad real imag".split())
_NUMBER_ATTRIBUTES = frozenset(
    """ndim is_cuda requires_grad is_leaf is_sparse itemsize nbytes is_meta is_mps is_quantized is_nested is_xpu""".split()
)


def constant(frame: Frame, node: ast.Constant) -> Fact:
    """A literal; `"cuda:0"` is a device wherever it stands."""
    value = node.value
    if value.__class__ is str and value[:4] == "cuda" and value[4:5] in ("", ":"):
        return _CUDA  # "cpu" is none: so an object begins that is sent elsewhere afterwards
    return _TYPES.get(value.__class__, THING)


def name(frame: Frame, node: ast.Name) -> Fact:
    """A name: local, of a function around it, of the module, a builtin."""
    word = node.id
    fact = frame.env.get(word)
    if fact is not None:
        return fact
    outer = frame.outer
    while outer is not None:
        fact = outer.env.get(word)
        if fact is not None:
            return fact
        outer = outer.outer
    fact = frame.module.facts.get(word)
    if fact is None:
        fact = lookup(frame.module, word)
    if fact is UNKNOWN and word in frame.used:
        return frame.assumed(word)
    return fact


def attribute_of(frame: Frame, node: ast.Attribute) -> Fact:
    """`owner.name`."""
    owner = frame.table[node.value.__class__](frame, node.value)
    return read_attribute(frame, node, owner)


def read_attribute(frame: Frame, node: ast.Attribute, owner: Fact) -> Fact:
    """An attribute of a known owner."""
    kind, word = owner.kind, node.attr
    if word == "param_groups":
        return _GROUPS
    if kind is TENSOR:
        return _tensor_attribute(frame, node, owner)
    if kind is OTHER or kind is MODULE:
        known = _of_object(frame, node, owner)
    elif kind is BATCH:
        return _of_batch(frame, word, owner)
    elif kind is ARRAY:
        return numpy.attribute(word)
    elif kind is SEQUENCE:
        known = _of_sequence(word, owner)
    else:
        known = NP_ARRAY if owner is NO_TENSOR and word == "T" else None  # a row of an array
    return known if known is not None else _of_unknown(frame, node)


def _of_object(frame: Frame, node: ast.Attribute, owner: Fact) -> Fact | None:
    """An attribute of something that is named, of a file of the project, or of an object of one of its classes."""
    ref, word = owner.ref, node.attr
    if isinstance(ref, str):
        if owner.kind is OTHER:
            return named(f"{ref}.{word}")
        if word == "module" and (inner := spread(owner)) is not None:
            return inner
        return parameter(owner, node) if word in _OF_LAYERS else None
    if isinstance(ref, Module):
        return member(owner, word)
    if ref is None:
        return None
    path = dotted(node)
    if path:
        fact = frame.env.get(path)
        if fact is not None and fact is not NONE:
            return fact
    fact = attribute(owner, word, frame)
    if fact is None:
        fact = member(owner, word)
    return fact if fact.kind is not NOTHING_KNOWN and fact is not NONE else used_as(frame, path)


_GROUPS = listed(items(UNKNOWN, {"params": listed(parameter(UNKNOWN, "an optimizer holds it"))}))
"""What an optimizer calls `param_groups`, and nobody else."""
_OF_LAYERS = ("weight", "bias", "in_proj_weight", "running_mean", "running_var")


def _of_sequence(word: str, owner: Fact) -> Fact | None:
    """`x.max(1).values`, and what a named tuple holds."""
    if word in ("values", "indices") and len(owner.elements) == 2:
        return owner.elements[word == "indices"]
    keys = owner.ref.keys if isinstance(owner.ref, Items) else None
    return keys.get(word) if keys is not None else None


def _of_batch(frame: Frame, word: str, owner: Fact) -> Fact:
    each = element(owner)
    if torch_geometric.split(word, frame.module.source):
        return each.but(dtype=BOOL, ndim=1, confidence=max(each.confidence, 2))
    return INTEGER if conventions.counts(word) else each


def _of_unknown(frame: Frame, node: ast.Attribute) -> Fact:
    """An attribute of something of which it is not known what it has: what it is given here, called and used for."""
    word, path = node.attr, dotted(node)
    if word == "shape":
        return SIZE
    if word == "batch_sizes":
        return _batch_sizes(node)
    if path:
        fact = frame.env.get(path)
        if fact is not None:
            return fact
        if fastai.batch(word, frame.module.source):
            return items(tensor(confidence=2, why=f"`{word}` is what fastai calls its batch"))
        if torch_geometric.split(word, frame.module.source):
            return tensor(BOOL, confidence=2, why=f"`{word}` is what torch_geometric calls a mask", ndim=1)
        fact = used_as(frame, path)
        if fact is not UNKNOWN:
            return fact
    if word == "logits" and getattr(node.value, "id", "") != "self":
        return tensor(FLOAT, confidence=2, why=node)  # of a model's output, or of a distribution
    if word.endswith("_tensor") and not word.startswith(("is_", "to_", "as_")):
        return tensor(confidence=1, why=f"`{word}` is what people call a tensor")
    return UNKNOWN


def used_as(frame: Frame, path: str) -> Fact:
    """What the uses of `a.b` in this function, or of `self.b` in this class, say."""
    if not path:
        return UNKNOWN
    weight = frame.used.get(path, 0)
    if weight < 2 and path.startswith("self."):
        cls = frame.cls
        if cls is not None:
            if cls.used_as is None:
                cls.used_as = usage_of(cls.module.parsed).between(
                    cls.node.lineno, cls.node.end_lineno or cls.node.lineno
                )
            weight = cls.used_as.get(path, 0)
    if weight == 2:
        return tensor(confidence=2, why=f"`{path}` is used as only a tensor can be")
    return UNKNOWN


def _batch_sizes(node: ast.Attribute) -> Fact:
    """Of a packed sequence, which keeps them on the host."""
    return tensor(INT, HOST, 3, node, ndim=1)


def _tensor_attribute(frame: Frame, node: ast.Attribute, owner: Fact) -> Fact:
    word = node.attr
    if word == "shape":
        return SIZE
    if word == "batch_sizes":
        return _batch_sizes(node)
    if word == "device":
        return Fact(OTHER, ANY_DTYPE, owner.device, confidence=3, ref=Tag.DEVICE)
    if word == "dtype":
        return Fact(OTHER, owner.dtype, confidence=3, ref=Tag.DTYPE)
    if word in _TENSOR_ATTRIBUTES:
        return like(owner)
    if word in _NUMBER_ATTRIBUTES:
        return INTEGER
    if word in ("values", "indices"):
        return like(owner, dtype=ANY_DTYPE if word == "values" else INT, ndim=None)
    path = dotted(node)
    if path:
        fact = frame.env.get(path)
        if fact is not None:
            return fact
        if frame.used.get(path) == 2:
            return tensor(confidence=2, why=f"`{path}` is used as only a tensor can be")
    return transformers.output(owner, node)


def conditional(frame: Frame, node: ast.IfExp) -> Fact:
    """`a if test else b`."""
    condition(frame, node.test)
    when, otherwise = learnt(frame, node.test)
    env = frame.env
    truth = decided(frame, node.test)
    if when:
        frame.env = {**env, **when}
    waits = frame.waits
    if truth is False:
        frame.waits = None
    guarded = frame.guarded
    rare_body, rare_else = rare_arms(frame, node.test)
    frame.guarded = guarded or rare_body
    around = frame.around
    frame.around = Later(lambda: of_test(frame, node.test) or heat_of(around))
    body = evaluate(frame, node.body)
    frame.guarded = guarded or rare_else
    frame.waits = None if truth is True else waits
    frame.env = {**env, **otherwise} if otherwise else env
    frame.around = Later(lambda: of_unmet(frame, node.test) or heat_of(around))
    other = evaluate(frame, node.orelse)
    frame.env, frame.waits, frame.guarded, frame.around = env, waits, guarded, around
    if truth is not None:
        return body if truth else other
    if isinstance(other.ref, ast.Lambda) and isinstance(body.ref, str):
        return body  # a lambda stands in for what an older version of a library does not have
    return join(body, other)


def formatted(frame: Frame, node: ast.JoinedStr) -> Fact:
    """An f-string: a tensor in it is printed, so it is read."""
    for part in node.values:
        if part.__class__ is ast.FormattedValue:
            fact = evaluate(frame, part.value)
            if fact.kind is TENSOR:
                frame.emit(Op.FORMAT, node, part.value, fact)
    return STRING


def anonymous(frame: Frame, node: ast.Lambda) -> Fact:
    """A lambda: its body is looked at where it stands."""
    env, used = frame.env, frame.used
    frame.env = dict(env)
    arguments = [each.arg for each in (*node.args.args, *node.args.kwonlyargs)]
    if any(used.get(name) == 2 for name in arguments):
        # They live in it alone: how the same names are used elsewhere says nothing of them.
        frame.used = usage_of(frame.module.parsed).between(node.lineno, node.end_lineno or node.lineno)
    for name in arguments:
        frame.env[name] = frame.assumed(name)
    frame.used = used
    evaluate(frame, node.body)
    frame.env = env
    return Fact(OTHER, confidence=3, ref=node)


def walrus(frame: Frame, node: ast.NamedExpr) -> Fact:
    """`name := value`."""
    fact = evaluate(frame, node.value)
    bind(frame, node.target, fact)
    return fact


def starred(frame: Frame, node: ast.Starred) -> Fact:
    """`*values` as an argument."""
    evaluate(frame, node.value)
    return SPREAD


def awaited(frame: Frame, node: ast.Await) -> Fact:
    """`await`."""
    evaluate(frame, node.value)
    return UNKNOWN


def yielded(frame: Frame, node: ast.Yield | ast.YieldFrom) -> Fact:
    """`yield`: whoever calls the function gets something to loop over that gives this."""
    given = evaluate(frame, node.value) if node.value is not None else NONE
    frame.returns.append(given if node.__class__ is ast.YieldFrom else items(given))
    return UNKNOWN


def slice_value(frame: Frame, node: ast.Slice) -> Fact:
    """A slice outside of an index of its own."""
    for bound in (node.lower, node.upper, node.step):
        if bound is not None:
            evaluate(frame, bound)
    return THING


EXPRESSIONS: dict[type, Callable[[Frame, Any], Fact]] = {
    ast.Constant: constant,
    ast.Name: name,
    ast.Attribute: attribute_of,
    ast.BinOp: binary_operation,
    ast.UnaryOp: unary_operation,
    ast.Compare: comparison,
    ast.BoolOp: boolean_operation,
    ast.IfExp: conditional,
    ast.Subscript: subscript,
    ast.Tuple: collection,
    ast.List: collection,
    ast.Set: collection,
    ast.Dict: dictionary,
    ast.ListComp: comprehension,
    ast.SetComp: comprehension,
    ast.GeneratorExp: comprehension,
    ast.DictComp: dict_comprehension,
    ast.JoinedStr: formatted,
    ast.Lambda: anonymous,
    ast.NamedExpr: walrus,
    ast.Starred: starred,
    ast.Await: awaited,
    ast.Yield: yielded,
    ast.YieldFrom: yielded,
    ast.Slice: slice_value,
    ast.Call: call,
    ast.FormattedValue: lambda frame, node: evaluate(frame, node.value),
}
