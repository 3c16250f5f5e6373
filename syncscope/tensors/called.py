"""What is called, by what a fact stands for: a function or a class of the project, a module, a name from outside it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache

from syncscope import discover
from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.heat import IN_TRAINING
from syncscope.model.ops import Op
from syncscope.project import conventions, devices
from syncscope.project.modules import Class, ProjectFunction
from syncscope.project.names import find_method
from syncscope.project.syntax import name_of
from syncscope.tensors import libraries
from syncscope.tensors.attributes import give_fields
from syncscope.tensors.call import Call
from syncscope.tensors.facts import (
    BATCH,
    DEVICE,
    FLOAT,
    HOST,
    MODULE,
    NOTHING_KNOWN,
    OTHER,
    PICKED,
    SOMEWHERE,
    TENSOR,
    Tag,
    TupleType,
    holds_tensor,
    on_host,
    tensor,
)
from syncscope.tensors.function_calls import call_function, call_module
from syncscope.tensors.functions import waits_inside
from syncscope.tensors.gradients import passed_back
from syncscope.tensors.instances import Bound, Instance, instance
from syncscope.tensors.libraries import einops, logging, numpy, standard
from syncscope.tensors.parameters import announced
from syncscope.tensors.passed import note_built
from syncscope.tensors.sent_parts import filled_anew
from syncscope.tensors.torch import distributions
from syncscope.tensors.torch.calls import torch_call
from syncscope.tensors.torch.host_indices import picked_from_host


def apply(call: Call, target: Fact) -> Fact:
    """Call what a fact stands for."""
    ref, args, keywords = target.ref, call.args, call.keywords
    picked = [fact for fact in args if fact.ref is PICKED]
    if picked and (target.kind is MODULE or _takes_tensors(call, target)):
        for fact in picked:
            picked_from_host(call.frame, fact.provenance, True)
    if target.kind is MODULE:
        return _run_module(call, target)
    if isinstance(ref, str):
        return external(call.named(ref)) if target.kind is OTHER else UNKNOWN
    if isinstance(ref, ProjectFunction):
        return _call_own(call, ref)
    if isinstance(ref, Bound):
        _announced_to(call, ref.function, ref.function.names[1:])
        result = call_function(ref.function, call.frame, args, keywords, ref.owner, call.unasked)
        _send_in_place(call, ref.function, ref.function.names[1:])
        return result
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
    _send_in_place(call, function, function.names)
    if "device" in call.keywords and call.where_made(SOMEWHERE) is HOST:
        result = on_host(result)
    if conventions.waits(function.name):
        call.frame.work = False
    if "script" in function.decorators() and call.frame.waits is not None and waits_inside(function):
        call.emit(Op.LIBRARY_READ, call.first_node, tensor(confidence=2, why=call.node))
    return result


def _send_in_place(call: Call, function: ProjectFunction, names: list[str]) -> None:
    """A batch whose parts a function sends in place lies on the device behind the call, though that gives nothing."""
    for at, fact, name in zip(call.nodes, call.args, names, strict=False):
        if fact.kind is BATCH and at.__class__ is ast.Name and name in filled_anew(function):
            call.frame.env[at.id] = Fact(BATCH, device=DEVICE, confidence=2, why=call.node, source=fact)


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
    # in training the mask is not looked into
    if masked and (frame.heat is None or frame.heat.reason not in IN_TRAINING):
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
    elif init is None:
        distributions.made_by_base(call, cls)
    elif init is not None:
        note_built(init, call.frame, call.args, call.keywords)
    if made.kind is MODULE and not any(fact.ref is Tag.DEVICE for fact in call.args):
        return made.but(device=SOMEWHERE if _wraps(call) else call.where_made(call.by_default))
    return made


def _wraps(call: Call) -> bool:
    """Whether a module is built around another, which lives where it was sent: `Averaged(net)`."""
    for at, fact in zip(call.nodes, call.args, strict=True):
        if fact.kind is MODULE and fact.device is not HOST:
            return True
        if fact.kind is NOTHING_KNOWN and isinstance(at, ast.Name) and devices.is_network(at.id):
            return True
    return False


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
