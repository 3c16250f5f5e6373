"""Calls of members, `receiver.name(...)`: methods of tensors, of objects, of what a loader gives, and of what nobody knows."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact, Value
from syncscope.model.ops import Op
from syncscope.project import conventions
from syncscope.project.devices import is_network
from syncscope.project.modules import Class, Module
from syncscope.project.names import ancestry, find_method, member
from syncscope.project.syntax import dotted
from syncscope.tensors.attributes import attribute, set_attribute
from syncscope.tensors.call import Call
from syncscope.tensors.called import apply, external
from syncscope.tensors.containers import container_method, string_method
from syncscope.tensors.facts import (
    ARRAY,
    BATCH,
    DEVICE,
    FIXED,
    HOST,
    LOADER,
    MODULE,
    NONE,
    NOTHING_KNOWN,
    NUMBER,
    OTHER,
    SCALAR,
    SEQUENCE,
    SOMEWHERE,
    STRING,
    TENSOR,
    TEXT,
    items,
    sequence,
)
from syncscope.tensors.function_calls import call_function, call_module
from syncscope.tensors.gradients import BACKWARD, passed_back
from syncscope.tensors.instances import Instance, instance, is_autograd_function, is_given_ctx
from syncscope.tensors.joins import element
from syncscope.tensors.libraries import numpy
from syncscope.tensors.methods_of_unknown import (
    OF_ARRAYS_ALONE,
    assumed_method,
    given_by_network,
    tells_by_name,
)
from syncscope.tensors.torch import distributions, modules
from syncscope.tensors.torch.methods import tensor_method
from syncscope.tensors.torch.objects import object_method
from syncscope.tensors.torch.signatures import ARRAY_LIKE, SHARED, TORCH_ONLY


def call_member(call: Call) -> Fact:
    """`receiver.name(...)`."""
    owner, word = call.receiver, call.word
    if word == "log_prob" and owner.kind is TENSOR and owner.confidence == 1:
        call.receiver = owner = UNKNOWN  # what a model gives may be a distribution, and no tensor has that
    kind, ref = owner.kind, owner.ref
    if word in BACKWARD and not isinstance(ref, Instance):
        passed_back(call, call.first_node or call.at)
    if kind is TENSOR:
        return _tensor_method(call)
    if kind is OTHER or kind is MODULE:
        return _of_object(call, kind)
    if kind is SEQUENCE:
        return container_method(call)
    if kind is ARRAY:
        return numpy.method(word)
    if kind is BATCH:
        return _batch_method(call)
    if kind is SCALAR:
        return NUMBER
    path = dotted(call.node.func)
    held = call.frame.env.get(path) if path else None
    if held is not None and held.kind is not NOTHING_KNOWN:
        return apply(call, held)
    tells_by_name(call)
    return assumed_method(call)


def _of_object(call: Call, kind: Value) -> Fact:
    """A method of a module, of something that is named, or of an object of a class of the project."""
    owner, word, ref = call.receiver, call.word, call.receiver.ref
    if kind is MODULE:
        found = call_module(call, owner) if word == "__call__" else modules.method(call)
        if found is not None:
            return found
    elif isinstance(ref, str):
        return _named_method(call, ref)
    if isinstance(ref, Module):
        return apply(call, member(owner, word))
    if ref is not None and not isinstance(ref, str):
        own = _own_method(call)
        if own is not None:
            return own
    tells_by_name(call)
    return assumed_method(call) if kind is OTHER and ref is None else UNKNOWN


def _own_method(call: Call) -> Fact | None:
    """A method of a class of the project, or of what that derives from."""
    owner, word, ref = call.receiver, call.word, call.receiver.ref
    if word == "register_buffer" and _registered(call):
        return NONE
    if word == "save_for_backward" and isinstance(ref, Instance) and not call.starred:
        set_attribute(owner, "saved_tensors", sequence(*call.args), call.frame)
        return NONE
    if word == "apply" and isinstance(ref, Class) and is_autograd_function(ref):
        return _applied(call, ref)
    taken = _own(call)
    if taken.kind is not NOTHING_KNOWN:
        return apply(call, taken)
    if not isinstance(ref, Instance):
        return None
    inherited = distributions.inherited(call, ref.cls)
    if inherited.kind is not NOTHING_KNOWN:
        return inherited
    of_network = is_network(word) or (owner.kind is MODULE and _sets(ref.cls, word))
    return given_by_network(call.node) if taken is not NONE and of_network else None


def _tensor_method(call: Call) -> Fact:
    owner = call.receiver
    telling = call.word in TORCH_ONLY or (call.word in OF_ARRAYS_ALONE and call.frame.alone)
    if telling and isinstance(call.at, ast.Call):
        call.frame.confirm(call.at, Op.CPU)
    if owner.confidence == 1 and telling and not isinstance(call.at, ast.Name):
        call.receiver = owner = owner.but(confidence=2)  # a name that is used so was found by its text
    if isinstance(owner.ref, Instance):  # of a class that derives from Tensor
        own = find_method(owner.ref.cls, call.word)
        if own is not None:
            return call_function(own, call.frame, call.args, call.keywords, owner)
    return tensor_method(call)


def _named_method(call: Call, ref: str) -> Fact:
    """A method of an object from outside the project, or a function of a module from there."""
    if ref.endswith("()"):
        if ref == LOADER and call.word in ("next", "__next__"):  # `iter(loader).next()`
            where = DEVICE if call.receiver.device is DEVICE else HOST
            return Fact(BATCH, device=where, confidence=2, why="a batch of a DataLoader")
        if ref.startswith("torchmetrics."):
            return external(call.named(f"{ref}.{call.word}"))
        return object_method(call, ref.removesuffix("()"))
    if ref is TEXT:
        return string_method(call)
    return external(call.named(f"{ref}.{call.word}"))


def _applied(call: Call, cls: Class) -> Fact:
    """`Function.apply(x)`: its `forward`, which is given a `ctx` before, where `setup_context` does not see to that."""
    forward = find_method(cls, "forward")
    if forward is None or call.spread:
        return UNKNOWN
    ctx = [instance(cls)] if is_given_ctx(forward, cls) else []
    return call_function(forward, call.frame, [*ctx, *call.args], call.keywords)


def _registered(call: Call) -> bool:
    """Whether a buffer was registered: it moves to the device with its module."""
    name = call.first_node
    if len(call.args) < 2 or not isinstance(name, ast.Constant):
        return False
    known = call.args[1] if call.args[1].kind is TENSOR else UNKNOWN
    buffer = Fact(TENSOR, known.dtype, SOMEWHERE, FIXED, known.ndim, 3, call.node)
    set_attribute(call.receiver, str(name.value), buffer, call.frame)
    return True


def _sets(cls: Class, name: str) -> bool:
    """Whether an object of a class has an attribute of this name: of a module, what is called is most often another."""
    prepares = conventions.PREPARERS.search(name)  # `self.tokenizer(text)`
    return not prepares and any(f"self.{name} = ".encode() in each.text for each in ancestry(cls))


def _own(call: Call) -> Fact:
    path = dotted(call.node.func)
    if path:
        fact = call.frame.env.get(path)
        if fact is not None and fact.kind is not NOTHING_KNOWN and fact is not NONE:
            return fact
    return attribute(call.receiver, call.word, call.frame) or member(call.receiver, call.word)


def _batch_method(call: Call) -> Fact:
    """A method of what a loader gives."""
    word, owner = call.word, call.receiver
    each = element(owner)
    if word in ("to", "cuda"):
        if owner.device is not DEVICE and not call.flag("non_blocking"):
            moved = Fact(BATCH, device=SOMEWHERE, confidence=max(owner.confidence, 2), why=owner.provenance)
            call.emit(Op.TO_DEVICE, call.at, moved, 2)
        return Fact(BATCH, device=DEVICE, confidence=max(owner.confidence, 2), why=call.node, source=owner)
    if word == "items":
        return items(sequence(STRING, each))
    if word in ("values", "get", "pop"):
        return each
    if word in TORCH_ONLY or word in ARRAY_LIKE or word in SHARED:
        call.receiver = each
        return tensor_method(call)
    return UNKNOWN
