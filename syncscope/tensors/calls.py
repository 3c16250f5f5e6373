"""Calls: who is called, with what; each is sent to who knows what it gives."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache

from syncscope import discover
from syncscope.model.fact import UNKNOWN, Fact, Value
from syncscope.model.heat import IN_TRAINING, Reason
from syncscope.model.ops import Op
from syncscope.project import conventions
from syncscope.project.devices import is_network
from syncscope.project.modules import Class, Module, ProjectFunction
from syncscope.project.names import ancestry, find_method, member
from syncscope.project.syntax import dotted, name_of
from syncscope.tensors import libraries
from syncscope.tensors.attributes import attribute, give_fields, set_attribute
from syncscope.tensors.call import Call, Keywords
from syncscope.tensors.containers import container_method, string_method
from syncscope.tensors.facts import (
    ARRAY,
    BATCH,
    DEVICE,
    FIXED,
    FLOAT,
    HOST,
    MODULE,
    NONE,
    NUMBER,
    OTHER,
    PICKED,
    SCALAR,
    SEQUENCE,
    SOMEWHERE,
    STRING,
    TENSOR,
    TEXT,
    Tag,
    TupleType,
    holds_tensor,
    items,
    on_host,
    sequence,
    tensor,
)
from syncscope.tensors.frame import Frame
from syncscope.tensors.function_calls import call_function, call_module
from syncscope.tensors.functions import waits_inside
from syncscope.tensors.gradients import BACKWARD, passed_back
from syncscope.tensors.instances import Bound, Instance, instance, is_autograd_function, is_given_ctx
from syncscope.tensors.joins import element
from syncscope.tensors.libraries import einops, logging, numpy, standard, transformers
from syncscope.tensors.methods_of_unknown import (
    OF_ARRAYS_ALONE,
    OF_DICTS,
    TELLING,
    asked_as_a_dict,
    assumed_method,
    by_its_owner,
    given_by_network,
    tells_by_name,
)
from syncscope.tensors.parameters import announced
from syncscope.tensors.passed import note_built
from syncscope.tensors.torch import distributions, modules
from syncscope.tensors.torch.calls import torch_call
from syncscope.tensors.torch.host_indices import picked_from_host
from syncscope.tensors.torch.methods import tensor_method
from syncscope.tensors.torch.objects import object_method
from syncscope.tensors.torch.signatures import ARRAY_LIKE, SHARED, TORCH_ONLY

NOTHING_KNOWN = UNKNOWN.kind


def call(frame: Frame, node: ast.Call) -> Fact:
    """What a call gives, and the waits that it makes."""
    batch = transformers.prepared(node) if node.keywords else None
    if batch is not None:
        _arguments(frame, node)
        return batch
    func = node.func
    if isinstance(func, ast.Attribute):
        receiver = frame.table[func.value.__class__](frame, func.value)
        word = func.attr
        if word in conventions.WARNINGS:
            before, frame.around = frame.around, Reason.WARNS()
            args, keywords = _arguments(frame, node)
            frame.around = before
        else:
            args, keywords = _arguments(frame, node)
        if receiver.kind is NOTHING_KNOWN and word not in TELLING:  # most methods of a file
            held = frame.env.get(dotted(func))
            if held is None or held.kind is NOTHING_KNOWN:
                given = by_its_owner(word, func.value)
                return given_by_network(node) if given is UNKNOWN and is_network(word) else given
        if word in OF_DICTS and receiver.kind is TENSOR and (found := asked_as_a_dict(word, func.value, receiver)):
            return found
        return call_member(Call(frame, node, word, args, keywords, receiver, func.value))
    target = frame.table[func.__class__](frame, func)
    args, keywords = _arguments(frame, node)
    return apply(Call(frame, node, "", args, keywords), target)


def _arguments(frame: Frame, node: ast.Call) -> tuple[list[Fact], Keywords]:
    """The facts of positional and keyword arguments."""
    table = frame.table
    args = [table[a.__class__](frame, a) for a in node.args]
    return args, {k.arg: table[k.value.__class__](frame, k.value) for k in node.keywords} if node.keywords else {}


def apply(call: Call, target: Fact) -> Fact:
    """Call what a fact stands for."""
    ref, args, keywords = target.ref, call.args, call.keywords
    if any(fact.ref is PICKED for fact in args) and (target.kind is MODULE or _takes_tensors(call, target)):
        for fact in args:
            if fact.ref is PICKED:
                picked_from_host(call.frame, fact.provenance, True)
    if target.kind is MODULE:
        return _run_module(call, target)
    if isinstance(ref, str):
        return external(call.named(ref)) if target.kind is OTHER else UNKNOWN
    if isinstance(ref, ProjectFunction):
        return _call_own(call, ref)
    if isinstance(ref, Bound):
        _announced_to(call, ref.function, ref.function.names[1:])
        return call_function(ref.function, call.frame, args, keywords, ref.owner, call.unasked)
    if isinstance(ref, Class):
        return construct(call, ref)
    if isinstance(ref, Instance):
        own = find_method(ref.cls, "__call__")
        return call_function(own, call.frame, args, keywords, target) if own is not None else UNKNOWN
    if isinstance(ref, TupleType):
        return UNKNOWN if call.spread else ref.of(args, keywords)
    return _call_by_name(call) if target.kind is NOTHING_KNOWN else UNKNOWN


def _call_own(call: Call, function: ProjectFunction) -> Fact:
    """A function of the project, by its name."""
    _announced_to(call, function, function.names)
    result = call_function(function, call.frame, call.args, call.keywords, unasked=call.unasked)
    if "device" in call.keywords and call.where_made(SOMEWHERE) is HOST:
        result = on_host(result)
    if conventions.waits(function.name):
        call.frame.work = False
    if "script" in function.decorators() and call.frame.waits is not None and waits_inside(function):
        call.emit(Op.LIBRARY_READ, call.first_node, tensor(confidence=2, why=call.node))
    return result


def _call_by_name(call: Call) -> Fact:
    """Something unknown, that is called like a model, or like what an optimizer is given."""
    name = name_of(call.node.func)
    if name in conventions.MODELS:
        call.frame.work = True
        return tensor(confidence=1, why=call.node)
    if name == "closure":
        return tensor(FLOAT, confidence=2, why="`closure()` gives an optimizer the loss", ndim=0)
    return UNKNOWN


def _announced_to(call: Call, called: ProjectFunction, names: list[str]) -> None:
    """A name of which no more than a guess is known is a tensor where one is announced: its function is looked at again."""
    frame, by = call.frame, call.frame.function
    if by is None or frame.waits is None or frame.inlined or called is by:
        return
    for at, fact, name in zip(call.nodes, call.args, names, strict=False):
        guess = fact.kind is NOTHING_KNOWN or (fact.kind is TENSOR and fact.confidence == 1)
        if guess and at.__class__ is ast.Name and frame.used.get(at.id) != 2:
            said = announced(called, name)
            if said.kind is TENSOR and said.confidence == 3:
                frame.used[at.id] = 2
                by.news, by.bound = True, {}
                frame.module.functions.append(by)


def _takes_tensors(call: Call, target: Fact) -> bool:
    """Whether this is the `forward` of a network, or a loss that a tensor is given as well."""
    ref = target.ref
    if isinstance(ref, Bound) and ref.owner.kind is MODULE and ref.function.name == "forward":
        return True
    named = conventions.is_loss(name_of(call.node.func))
    return named and any(fact.kind is TENSOR and fact.confidence > 1 for fact in call.args)


_READING = (".AdaptiveLogSoftmaxWithLoss", ".GaussianNLLLoss")  # modules that ask a value of the device in each call


_CAUSAL = {
    ".TransformerEncoder": ((1, "mask", "is_causal"),),
    ".TransformerDecoder": ((2, "tgt_mask", "tgt_is_causal"),),
    ".Transformer": ((2, "src_mask", "src_is_causal"), (3, "tgt_mask", "tgt_is_causal")),
}
"""Masks that a module compares with a causal one, where nobody says whether they are: it asks whether both are equal."""


def _compare_masks(call: Call, ref: str) -> None:
    for at, mask, is_causal in _CAUSAL.get(f".{ref.rpartition('.')[2]}", ()):
        given = call.given(at, mask)
        if given.kind is TENSOR and given.device is not HOST and is_causal not in call.keywords:
            call.emit(Op.LIBRARY_READ, call.node_of(at, mask), given)


def _run_module(call: Call, module: Fact) -> Fact:
    frame, ref = call.frame, module.ref
    frame.work = True
    if isinstance(ref, str) and ref.endswith(_READING):
        call.emit(Op.LIBRARY_READ, call.first_node, tensor(device=module.device, confidence=2, why=call.node))
    if isinstance(ref, str):
        _compare_masks(call, ref)
    if isinstance(ref, str) and ref.endswith(".CTCLoss"):
        return external(call.named("torch.nn.functional.ctc_loss"))
    masked = isinstance(ref, str) and ref.endswith(".TransformerEncoder") and "src_key_padding_mask" in call.keywords
    if masked and (
        frame.heat is None or frame.heat.reason not in IN_TRAINING
    ):  # in training the mask is not looked into
        call.emit(Op.TRANSFORMER_MASK, call.node.func, tensor(confidence=2, why=call.node))
    size = call.keywords.get("output_size") if isinstance(ref, str) else None  # `conv_transpose(x, output_size=...)`
    if size is not None and (held := holds_tensor(size)) is not None:
        call.emit(Op.SIZE, call.node_of(len(call.nodes), "output_size"), held)
    return call_module(call, module)


def construct(call: Call, cls: Class) -> Fact:
    """An object of a class of the project; what a dataclass is given becomes its attributes."""
    made = instance(cls)
    init = find_method(cls, "__init__")
    if init is None and cls.fields:
        given = [] if call.starred else zip(cls.fields, call.args, strict=False)
        give_fields(made, cls, [*given, *call.keywords.items()], call.frame)
    elif init is not None:
        note_built(init, call.frame, call.args, call.keywords)
    if made.kind is MODULE and not any(fact.ref is Tag.DEVICE for fact in call.args):
        return made.but(device=call.where_made(call.by_default))
    return made


# -- names from outside the project


@cache
def _libraries() -> frozenset[str]:
    """The libraries of which something is known."""
    return frozenset(discover.names(libraries))


@cache
def _known_of(library: str) -> Callable[[Call], Fact | None] | None:
    """What says what the calls of a library give, by the name that is imported; None where nothing is known of it."""
    own = torch_call if library == "torch" else standard.CALLS.get(library) or numpy.CALLS.get(library)
    name = discover.slug(library)
    if own is None and name in _libraries():
        return getattr(discover.load(libraries, name), "call", None)
    return own


def external(call: Call) -> Fact:
    """A call of a dotted name from outside the project."""
    if call.name == "torch.autograd.grad":
        passed_back(call, call.node_of(0, "outputs"))
    library = _known_of(call.name.partition(".")[0])
    found = library(call) if library is not None else None
    if found is None:
        found = einops.anywhere(call) or logging.anywhere(call)
    return found or UNKNOWN


# -- methods


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
