"""What is known of the parameters of a function: by annotation, by what callers pass, by use, by what people call them."""

from __future__ import annotations

import ast
from functools import lru_cache

from syncscope.heat import judge
from syncscope.model.fact import UNKNOWN, Fact
from syncscope.project import conventions, devices
from syncscope.project.modules import Class, ProjectFunction
from syncscope.tensors.annotations import annotated
from syncscope.tensors.attributes import attribute
from syncscope.tensors.documented import documented, documented_as_mask
from syncscope.tensors.facts import (
    ANY_DTYPE,
    ARRAY,
    BATCH,
    BOOL,
    DEFAULT,
    HOST,
    INT,
    INTEGER,
    MODULE,
    OTHER,
    SCALAR,
    SEQUENCE,
    SOMEWHERE,
    STRING,
    TENSOR,
    Tag,
    items,
    on_host,
    sequence,
    tensor,
)
from syncscope.tensors.frame import Frame
from syncscope.tensors.host_only import host_only
from syncscope.tensors.instances import instance, is_given_ctx
from syncscope.tensors.joins import element
from syncscope.tensors.libraries import torch_geometric

# A default says what is usual, not what comes.
_USUAL = Fact(SCALAR, device=HOST, confidence=1)
ON_HOST = Fact(
    OTHER, device=HOST, confidence=3, ref=Tag.DEVICE
)  # beside `device` it is another: where something is kept
_LOADED = Fact(BATCH, confidence=1, why="a step is given what its loader made")
_DEFAULTS = {int: _USUAL, float: _USUAL, bool: _USUAL, str: STRING}


def given_as_loaded(function: ProjectFunction | None) -> Fact | None:
    """What the arguments of a trainer's step are parts of: the loader's batch, which no framework has moved before.

    A Lightning module is given its batch on the device.
    """
    if function is None or not _is_step(function.name):
        return None
    of_module = function.cls is not None and instance(function.cls).kind is MODULE
    return None if of_module else _LOADED


@lru_cache(maxsize=1000)  # asked whenever a function is run
def _is_step(name: str) -> bool:
    return conventions.STEP_CALL.match(name.lstrip("_")) is not None


def bind_parameters(function: ProjectFunction, frame: Frame) -> None:
    """Give the parameters of a function what is known of them."""
    arguments = function.node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    cls = function.cls
    host = judge.on_host(function)
    building = cls is not None and function.name == "__init__" and instance(cls).kind is MODULE
    frame.on_host = host or building  # a module is built on the host, then moved
    first = 0
    forward = False
    if cls is not None and positional and "staticmethod" not in function.decorators():
        owner = instance(cls)
        bound = Fact(OTHER, confidence=3, ref=cls) if "classmethod" in function.decorators() else owner
        frame.env[positional[0].arg] = bound
        first = 1
        forward = function.name in conventions.FORWARD and owner.kind is MODULE
    elif cls is not None and positional and is_given_ctx(function, cls):
        frame.env[positional[0].arg] = instance(cls)
        first = 1
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    pairs = [
        *zip(positional[first:], defaults[first:], strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    private = conventions.is_private(function.name)
    loaded = given_as_loaded(function)
    for argument, default in pairs:
        known = _announced(function, argument, frame) if argument.annotation is not None else UNKNOWN
        if known.kind is SEQUENCE and argument.arg in conventions.MATCHED:
            known = _matched(function, argument.arg) or known
        if argument.arg.endswith("_device") and isinstance(default, ast.Constant) and default.value == "cpu":
            known = ON_HOST
        passed = function.passed.get(argument.arg)
        if passed is not None and _contradicts(passed, known, private):
            usual = isinstance(default, ast.Constant) and known.kind is SCALAR  # most callers leave it out
            sure = 1 if usual else 3 if private else 2  # callers in other files pass what is announced
            known = passed.but(confidence=min(passed.confidence, sure))
        elif passed is not None and known.kind is SEQUENCE and len(passed.elements) == len(known.elements):
            known = _in_place_of_numbers(passed, known)
        elif known.kind is TENSOR and known.confidence >= 3:
            if known.dtype is ANY_DTYPE and documented_as_mask(function, argument.arg):
                known = known.but(dtype=BOOL)
            if passed is not None and passed.kind is TENSOR and passed.confidence >= 2:
                inner = function.closure is not None or (
                    (private or "staticmethod" in function.decorators()) and passed.device in (HOST, DEFAULT)
                )
                known = _told_more(known, passed, inner)
                if function.name == "__init__" and passed.device is HOST:  # others may build it of the device's
                    known = Fact(
                        TENSOR,
                        known.dtype,
                        SOMEWHERE,
                        known.shape,
                        known.ndim,
                        3,
                        passed.provenance,
                        ref=Tag.PERHAPS_OF_HOST,
                    )
        elif known is UNKNOWN or known.kind is TENSOR:
            known = _guessed(function, argument, default, known, frame, forward, host)
            if passed is not None and (
                known.kind is not TENSOR or passed.kind is TENSOR or _is_no_guess(passed, known)
            ):
                surer = passed.kind is not TENSOR or passed.confidence >= known.confidence
                flag = isinstance(default, ast.Constant) and isinstance(default.value, bool)
                known = (
                    passed.but(confidence=1) if flag else passed if surer else passed.but(confidence=known.confidence)
                )
        batch = passed if passed is not None and passed.kind is BATCH else loaded if passed is None else None
        if batch is not None and known.kind is TENSOR and known.source is None:
            known = Fact(TENSOR, known.dtype, known.device, known.shape, known.ndim, known.confidence, source=batch)
        if known.kind is TENSOR and known.ndim is None:
            rank = torch_geometric.rank(argument.arg, function.module.source)
            known = known.but(ndim=rank) if rank is not None else known
        if known.kind is TENSOR and (
            frame.on_host or argument.arg in conventions.OF_THE_HOST or argument.arg in host_only(function)
        ):
            known = Fact(TENSOR, known.dtype, HOST, known.shape, known.ndim, known.confidence, known.provenance)
        elif known.kind is SEQUENCE and argument.arg in conventions.OF_THE_HOST:
            known = items(on_host(element(known)))
        if known is not UNKNOWN:
            frame.env[argument.arg] = known
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None and rest.annotation is not None:
            frame.env[rest.arg] = items(annotated(function.module, rest.annotation))


def _announced(function: ProjectFunction, argument: ast.arg, frame: Frame) -> Fact:
    name, said = argument.arg, argument.annotation
    plain = function.module.announced.get(said.id) if said.__class__ is ast.Name else None
    known = plain or annotated(function.module, said, f"`{name}` is annotated as a tensor")
    if function.cls is not None and (known is INTEGER or (known.kind is TENSOR and known.confidence == 1)):
        return _one_of_many(function.cls, name, frame) or known
    return known


def announced(function: ProjectFunction, name: str) -> Fact:
    """What a function says of a parameter by its annotation."""
    a = function.node.args
    for argument in (*a.posonlyargs, *a.args):
        if argument.arg == name:
            return annotated(function.module, argument.annotation) if argument.annotation is not None else UNKNOWN
    return UNKNOWN


def _one_of_many(cls: Class, name: str, frame: Frame) -> Fact | None:
    """An argument `step` of an object that holds a tensor `steps`: one of its elements, though it be annotated as an int."""
    many = attribute(instance(cls), f"{name}s", frame)
    if many is None or many.kind is not TENSOR or many.confidence < 2:
        return None
    return tensor(many.dtype, confidence=2, why=f"`{name}` is one of `self.{name}s`", ndim=0)


def _contradicts(passed: Fact, known: Fact, private: bool) -> bool:
    """Whether what is passed is a tensor in place of a number, or, of a private function, an array in place of a tensor."""
    if known.kind is TENSOR:
        return private and passed.kind is ARRAY
    number = known.kind is SCALAR and known.confidence == 3 and known.dtype is not BOOL  # a flag is one, most often
    return number and passed.kind is TENSOR and passed.confidence >= 2 and passed.ndim == 0


def _in_place_of_numbers(passed: Fact, known: Fact) -> Fact:
    """A tuple of what is announced, but for the tensors that are passed in place of its numbers."""
    one = {
        at: fact.but(ndim=0, confidence=2)
        for at, (fact, said) in enumerate(zip(passed.elements, known.elements, strict=True))
        if said.kind is SCALAR and fact.kind is TENSOR and fact.confidence >= 2 and not fact.ndim
    }
    return sequence(*(one.get(at, said) for at, said in enumerate(known.elements))) if one else known


def _is_no_guess(passed: Fact, known: Fact) -> bool:
    """Whether callers pass numbers alone where only a name says that it is a tensor."""
    return passed.kind is SCALAR and passed.confidence == 3 and known.confidence == 1


def _told_more(known: Fact, passed: Fact, inner: bool) -> Fact:
    """What is annotated as a tensor, with what the callers say of it; they say where it lives only of an inner function's."""
    return Fact(
        TENSOR,
        passed.dtype if passed.dtype is not ANY_DTYPE else known.dtype,
        passed.device if inner else known.device,
        passed.shape,
        passed.ndim,
        3,
        known.provenance,
        ref=known.ref,
        source=passed,
    )


def _takes(function: ProjectFunction, name: str) -> bool:
    """Whether a function has a parameter of this name."""
    return name in function.names or any(each.arg == name for each in function.node.args.kwonlyargs)


def _matched(function: ProjectFunction, name: str) -> Fact | None:
    """What a bipartite matching on the host has given: positions of predictions and of targets, for each image."""
    owner = function.cls.name if function.cls is not None else ""
    if not conventions.of_a_matching(owner, function.name, name):
        return None
    where = tensor(INT, HOST, 2, f"`{name}` is what a matching on the host gives", ndim=1)
    where.ref = Tag.MATCHED
    return items(sequence(where, where))


def _guessed(
    function: ProjectFunction,
    argument: ast.arg,
    default: ast.expr | None,
    known: Fact,
    frame: Frame,
    forward: bool,
    host: bool,
) -> Fact:
    """What its default, its uses and its name say of a parameter."""
    name = argument.arg
    weight = frame.used.get(name, 0)
    if isinstance(default, ast.Constant) and default.value is not None:
        return _DEFAULTS.get(type(default.value), UNKNOWN) if not weight or argument.annotation is None else known
    matched = _matched(function, name) if known is UNKNOWN and name in conventions.MATCHED else None
    if matched is not None:
        return matched
    if weight == 2:
        said = documented(function, name) if known.dtype is ANY_DTYPE else known
        return tensor(
            said.dtype if said.kind is TENSOR else known.dtype,
            confidence=2,
            why=f"`{name}` is used as only a tensor can be",
            ndim=said.ndim,
        )
    if argument.annotation is not None:
        return known
    said = documented(function, name)
    if said is not UNKNOWN:
        return said.but(confidence=1) if said.kind is TENSOR and conventions.counts(name) else said
    if weight and frame.env and next(iter(frame.env.values())).kind is MODULE:
        return tensor(confidence=2, why=f"`{name}` is used like an array in an nn.Module")
    if forward and not conventions.is_number(name):
        return tensor(confidence=1, why=f"`{name}` is an argument of `{function.name}`")
    if name in devices.BATCHES and devices.OF_A_BATCH.search(function.name) and known is UNKNOWN:
        return Fact(BATCH, confidence=1, why=f"`{name}` is what people call a loader's")
    if name in conventions.TENSORS and not host and (name not in conventions.OF_DICTS or _takes(function, "query")):
        return tensor(confidence=1, why=f"`{name}` is what people call a tensor")
    return known
