"""What is known of the parameters of a function: by annotation, by what callers pass, by use, by what people call them."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import NamedTuple

from syncscope.heat import backward, of_data
from syncscope.model.fact import UNKNOWN, Fact
from syncscope.project import conventions, devices
from syncscope.project.modules import Class, ProjectFunction
from syncscope.project.private_names import is_private
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
    Items,
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
from syncscope.tensors.of_a_batch import of_a_batch

# A default says what is usual, not what comes.
_USUAL = Fact(SCALAR, device=HOST, confidence=1)
# beside `device` it is another: where something is kept
ON_HOST = Fact(OTHER, device=HOST, confidence=3, ref=Tag.DEVICE)
_LOADED = Fact(BATCH, confidence=1, why="a step is given what its loader made")
_NUMBERS = Fact(SEQUENCE, confidence=1, ref=Items(UNKNOWN))
_DEFAULTS = {int: _USUAL, float: _USUAL, bool: _USUAL, str: STRING}


def _are_numbers(default: ast.expr | None) -> bool:
    """Whether a default is a list of numbers that is written out, `anchors=((1, 2), (3, 4))`."""
    if isinstance(default, (ast.Tuple, ast.List)):
        return bool(default.elts) and all(
            _are_numbers(each) or (isinstance(each, ast.Constant) and isinstance(each.value, (int, float)))
            for each in default.elts
        )
    return False


def given_as_loaded(function: ProjectFunction | None) -> Fact | None:
    """What the arguments of a trainer's step are parts of: the loader's batch, which no framework has moved before.

    A Lightning module is given its batch on the device.
    """
    if function is None or not (_is_step(function.name) or _does_a_batch(function) or _runs_backward_pass(function)):
        return None
    of_module = function.cls is not None and instance(function.cls).kind is MODULE
    return None if of_module else _LOADED


@lru_cache(maxsize=1000)  # asked whenever a function is run
def _is_step(name: str) -> bool:
    return conventions.STEP_CALL.match(name.lstrip("_")) is not None


def _does_a_batch(function: ProjectFunction) -> bool:
    """Whether a method is what an experiment of one's own does with a batch: `_process_one_batch`."""
    return function.cls is not None and function.name.endswith("_batch")


def _runs_backward_pass(function: ProjectFunction) -> bool:
    """Whether a function is a step, whatever it is called: it holds a backward pass in no loop of its own."""
    return backward.steps(function.module.source).has(function.name, function.cls is not None)


def bind_parameters(function: ProjectFunction, frame: Frame) -> None:
    """Give the parameters of a function what is known of them."""
    arguments = function.node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    host = of_data.on_host(function)
    cls = function.cls
    building = cls is not None and function.name == "__init__" and instance(cls).kind is MODULE
    frame.on_host = host or building  # a module is built on the host, then moved
    owned = positional[0] if positional and _bind_owner(function, frame, positional[0].arg) else None
    own = positional[owned is not None :]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    pairs = [
        *zip(own, defaults[owned is not None :], strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    around = _Around(function, frame, owned is not None and _is_forward(function), host)
    loaded = given_as_loaded(function)
    for argument, default in pairs:
        parameter = _Parameter(around, argument, default, function.passed.get(argument.arg))
        known = parameter.known()
        if known is not UNKNOWN:  # of most nothing is
            frame.env[argument.arg] = parameter.placed(parameter.ranked(parameter.loaded(known, loaded)))
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None and rest.annotation is not None:
            frame.env[rest.arg] = items(annotated(function.module, rest.annotation))


def _bind_owner(function: ProjectFunction, frame: Frame, name: str) -> bool:
    """Give the first parameter of a method its object, or its class; whether it has one."""
    cls = function.cls
    if cls is None:
        return False
    if "staticmethod" not in function.decorators():
        of_class = "classmethod" in function.decorators()
        frame.env[name] = Fact(OTHER, confidence=3, ref=cls) if of_class else instance(cls)
        return True
    if is_given_ctx(function, cls):
        frame.env[name] = instance(cls)
        return True
    return False


def _is_forward(method: ProjectFunction) -> bool:
    """Whether a method is what a module does with its input."""
    cls = method.cls
    own = cls is not None and method.name in conventions.FORWARD and "staticmethod" not in method.decorators()
    return own and cls is not None and instance(cls).kind is MODULE


class _Around(NamedTuple):
    """What holds for all parameters of a function."""

    function: ProjectFunction
    frame: Frame
    forward: bool  # it is what a module does with its input
    on_host: bool  # it prepares data

    @property
    def private(self) -> bool:
        """Whether nobody else calls the function: what is passed here is all that is."""
        return is_private(self.function.name)


class _Parameter(NamedTuple):
    """A parameter, and what its callers in this file pass for it."""

    around: _Around
    argument: ast.arg
    default: ast.expr | None
    passed: Fact | None

    def known(self) -> Fact:
        """What its annotation says, else what its callers pass, its uses and its name."""
        said, passed = self._said(), self.passed
        if passed is not None and _contradicts(passed, said, self.around.private):
            return self._in_place_of(said, passed)
        if passed is not None and said.kind is SEQUENCE and len(passed.elements) == len(said.elements):
            return _in_place_of_numbers(passed, said)
        if said.kind is TENSOR and said.confidence >= 3:
            return self._told_more(said)
        return self._guessed_or_passed(said) if said is UNKNOWN or said.kind is TENSOR else said

    def _said(self) -> Fact:
        """What its annotation says, and of a few what they are called."""
        argument, function = self.argument, self.around.function
        if argument.arg.endswith("_device") and isinstance(self.default, ast.Constant) and self.default.value == "cpu":
            return ON_HOST
        if argument.annotation is None:
            return UNKNOWN
        said = _announced(function, argument, self.around.frame)
        if said.kind is SEQUENCE and argument.arg in conventions.MATCHED:
            return _matched(function, argument.arg) or said
        return said

    def _in_place_of(self, said: Fact, passed: Fact) -> Fact:
        """What is passed, though something else is announced."""
        usual = isinstance(self.default, ast.Constant) and said.kind is SCALAR  # most callers leave it out
        sure = 1 if usual else 3 if self.around.private else 2  # callers in other files pass what is announced
        return passed.but(confidence=min(passed.confidence, sure))

    def _told_more(self, said: Fact) -> Fact:
        """What is announced as a tensor, with what its docstring and its callers say of it."""
        function, passed = self.around.function, self.passed
        if said.dtype is ANY_DTYPE and documented_as_mask(function, self.argument.arg):
            said = said.but(dtype=BOOL)
        if passed is None or passed.kind is not TENSOR or passed.confidence < 2:
            return said
        own = self.around.private or "staticmethod" in function.decorators()
        inner = function.closure is not None or (own and passed.device in (HOST, DEFAULT))
        known = _told_more(said, passed, inner)
        if function.name != "__init__" or passed.device is not HOST:
            return known
        return Fact(  # others may build it of the device's
            TENSOR, known.dtype, SOMEWHERE, known.shape, known.ndim, 3, passed.provenance, ref=Tag.PERHAPS_OF_HOST
        )

    def _guessed_or_passed(self, said: Fact) -> Fact:
        guess, passed = self._guessed(said), self.passed
        if passed is None or (guess.kind is TENSOR and passed.kind is not TENSOR and not _is_no_guess(passed, guess)):
            return guess
        if isinstance(self.default, ast.Constant) and isinstance(self.default.value, bool):
            return passed.but(confidence=1)
        surer = passed.kind is not TENSOR or passed.confidence >= guess.confidence
        return passed if surer else passed.but(confidence=guess.confidence)

    def _guessed(self, said: Fact) -> Fact:
        """What its default, its uses and its name say."""
        function, frame, name, default = self.around.function, self.around.frame, self.argument.arg, self.default
        weight = frame.used.get(name, 0)
        announced = self.argument.annotation is not None
        if isinstance(default, ast.Constant) and default.value is not None:
            return said if weight and announced else _DEFAULTS.get(type(default.value), UNKNOWN)
        matched = _matched(function, name) if said is UNKNOWN and name in conventions.MATCHED else None
        if matched is not None:
            return matched
        # of Lightning: what `training_step` gave, detached
        if name == "outputs" and function.name == "on_train_batch_end":
            return items(UNKNOWN, {"loss": tensor(confidence=2, why="`outputs` are those of the training step")})
        if weight == 2:
            told = documented(function, name) if said.dtype is ANY_DTYPE else said
            dtype = told.dtype if told.kind is TENSOR else said.dtype
            return tensor(dtype, confidence=2, why=f"`{name}` is used as only a tensor can be", ndim=told.ndim)
        if announced:
            return said
        told = documented(function, name)
        if told is not UNKNOWN:
            return told.but(confidence=1) if told.kind is TENSOR and conventions.counts(name) else told
        if said is not UNKNOWN:
            return said
        named = self._by_name(weight)
        return _NUMBERS if named is UNKNOWN and _are_numbers(default) else named

    def _by_name(self, weight: int) -> Fact:
        """What a parameter is called, of which nothing else is known."""
        function, frame, name = self.around.function, self.around.frame, self.argument.arg
        if weight and frame.env and next(iter(frame.env.values())).kind is MODULE:
            return tensor(confidence=2, why=f"`{name}` is used like an array in an nn.Module")
        if self.around.forward and not conventions.is_number(name):
            return tensor(confidence=1, why=f"`{name}` is an argument of `{function.name}`")
        if name in devices.BATCHES and (devices.OF_A_BATCH.search(function.name) or _runs_backward_pass(function)):
            return Fact(BATCH, confidence=1, why=f"`{name}` is what people call a loader's")
        called = name in conventions.TENSORS and (name not in conventions.OF_DICTS or _takes(function, "query"))
        if called and not self.around.on_host:
            return tensor(confidence=1, why=f"`{name}` is what people call a tensor")
        return UNKNOWN

    def loaded(self, known: Fact, batch: Fact | None) -> Fact:
        """The same as a part of what a loader gave: of the batch, or of the part of one, that is passed, or of a step's."""
        passed = self.passed
        if passed is not None:
            batch = passed if passed.kind is BATCH or of_a_batch(passed) else None
        if batch is None or known.kind is not TENSOR or not (known.source is None or known.source is passed):
            return known
        return Fact(TENSOR, known.dtype, known.device, known.shape, known.ndim, known.confidence, source=batch)

    def ranked(self, known: Fact) -> Fact:
        """The same with as many dimensions as its name says."""
        if known.kind is not TENSOR or known.ndim is not None:
            return known
        rank = torch_geometric.rank(self.argument.arg, self.around.function.module.source)
        return known.but(ndim=rank) if rank is not None else known

    def placed(self, known: Fact) -> Fact:
        """The same on the host, where it can live nowhere else."""
        name = self.argument.arg
        if known.kind is SEQUENCE and name in conventions.OF_THE_HOST:
            return items(on_host(element(known)))
        if known.kind is TENSOR and (
            self.around.frame.on_host or name in conventions.OF_THE_HOST or name in host_only(self.around.function)
        ):
            return Fact(TENSOR, known.dtype, HOST, known.shape, known.ndim, known.confidence, known.provenance)
        return known


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
