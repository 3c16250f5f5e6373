"""Calls of the project's own functions: what one gives for all that call it, and for what this call passes."""

from __future__ import annotations

import ast
from typing import NamedTuple

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.project import beside_training, conventions
from syncscope.project.modules import ProjectFunction
from syncscope.project.names import find_method
from syncscope.tensors.call import Call, Keywords
from syncscope.tensors.facts import (
    ARRAY,
    DEFAULT,
    DEVICE,
    HOST,
    INT,
    LOADER,
    MODULE,
    NONE,
    NOTHING_KNOWN,
    SCALAR,
    SEQUENCE,
    SOMEWHERE,
    SPREAD,
    TENSOR,
    Tag,
    on_device,
    on_host,
    sequence,
    spread,
    tensor,
)
from syncscope.tensors.frame import Frame, execute
from syncscope.tensors.functions import DEEPEST, conclude, outer_of, promised, run, used
from syncscope.tensors.instances import Instance
from syncscope.tensors.parameters import ON_HOST, bind_parameters
from syncscope.tensors.passed import note, tries_out
from syncscope.tensors.settling import Settling
from syncscope.tensors.torch import modules

_INLINED = 2  # calls into calls for particular arguments
_LONGEST = 60  # lines of a function that is run for particular arguments
_PARTICULAR = 9  # times that one is run for what a file passes
_TELLING = (TENSOR, ARRAY, SEQUENCE, MODULE, SCALAR)


def call_function(
    function: ProjectFunction,
    frame: Frame,
    args: list[Fact],
    keywords: Keywords,
    owner: Fact | None = None,
    unasked: bool = False,
) -> Fact:
    """The result of calling a function of the project, and note what was passed for its parameters.

    Where nobody asks for the result, a function of another file is not gone into.
    """
    if unasked and function.module is not frame.module and frame.seen is None:
        return UNKNOWN
    names = function.names
    if function.cls is not None and owner is not None and "staticmethod" not in function.decorators():
        names = names[1:]
    given: dict[str, Fact] = dict(zip(names, args, strict=False))
    if keywords:
        given.update((name, fact) for name, fact in keywords.items() if name is not None)
    left_out: dict[str, Fact] = {}
    if function.left_out and not (None in keywords or any(each is SPREAD for each in args)):
        left_out = {
            name: NONE if value is None else ON_HOST for name, value in function.left_out.items() if name not in given
        }
    if tries_out(frame, function):
        given = {name: fact for name, fact in given.items() if fact.kind is not TENSOR or fact.device is not HOST}
        return _FunctionCall(function, frame, given, left_out).of_all()
    call = _FunctionCall(function, frame, given, left_out)
    return call.placed(call.told_more(call.of_all()), owner)


def call_module(call: Call, module: Fact) -> Fact:
    """What calling an nn.Module gives: its own `forward` when it is of this project, else what torch's gives."""
    args, keywords = call.args, call.keywords
    if (inner := spread(module)) is not None:
        module, args = inner, [*map(on_device, args)]
        keywords = {name: on_device(fact) for name, fact in keywords.items()}
    ref = module.ref
    if not isinstance(ref, Instance):
        return modules.result(module, call.node, args)
    method = find_method(ref.cls, "forward") or find_method(ref.cls, "__call__")
    if method is not None:
        result = call_function(method, call.frame, args, keywords, module, call.unasked)
        if result.kind is not NOTHING_KNOWN:
            return result
    return tensor(confidence=1, why=call.node)


class _FunctionCall(NamedTuple):
    """A function, who calls it, and what is passed, and left out, by the names of its parameters."""

    function: ProjectFunction
    frame: Frame
    given: dict[str, Fact]
    left_out: dict[str, Fact]

    @property
    def here(self) -> bool:
        """Whether it is a function of the caller's own file."""
        return self.function.module is self.frame.module

    def of_all(self) -> Fact:
        """What the function gives to whoever calls it."""
        function, depth = self.function, self.frame.depth + 1
        if self.here and function.module.linted:
            if function.result is None and not function.running:
                note(function, self.given)
                return run(function, depth)
            if note(function, self.given) and not function.running:
                function.news = True
                function.module.functions.append(function)
            return function.result if function.result is not None else promised(function)
        if self.here or function.node.returns is None:
            return run(function, depth)
        said = promised(function)
        if said.kind is not SEQUENCE and said.kind is not TENSOR and said.kind is not NOTHING_KNOWN:
            return said
        better = run(function, depth)
        return better if better.kind is not NOTHING_KNOWN else said

    def told_more(self, result: Fact) -> Fact:
        """What the function gives, where it gives more, or something surer, for what this call passes."""
        unlike = self.here and self._unlike_others()
        if result.kind is TENSOR and result.confidence >= 2 and not (self.here and (unlike or self._guesses())):
            return self._told_where(result) if result.device is SOMEWHERE else result
        if result.kind is not NOTHING_KNOWN and result.kind is not TENSOR and result.kind is not SEQUENCE:
            return result
        better = self._particular()
        if better.kind is not NOTHING_KNOWN:
            return better
        several = unlike or len(self.function.calls) >= _PARTICULAR
        if result.kind is TENSOR and result.confidence > 1 and several:
            return result.but(confidence=1)  # called in too many ways, or too unlike, to say more of this one
        return result

    def _told_where(self, result: Fact) -> Fact:
        """A tensor that lives anywhere, where what is left out may say where: `device=None`, `x=None` of `.to(x.device)`."""
        one_is_there = any(fact.kind is TENSOR and fact.device is DEVICE for fact in self.given.values())
        unsure = result.ref is Tag.PERHAPS_OF_HOST and (bool(self.function.left_out) or one_is_there)
        if not (unsure or self._leaves_out_a_place()):
            return result
        better = self._particular()
        if better.kind is TENSOR and (better.device is HOST or result.ref is Tag.PERHAPS_OF_HOST):
            return better if better.device is not HOST else result.but(device=HOST)
        return result

    def placed(self, result: Fact, owner: Fact | None) -> Fact:
        """What the function gives, where what is passed says where that lives."""
        if result.kind is SEQUENCE and conventions.of_a_matcher(self.function.name):
            why = f"`{self.function.name}` hands on what a matcher found, on the host"
            return sequence(*(tensor(INT, HOST, 2, why, ndim=1) for _ in result.elements))
        given = self.given
        if result.kind is TENSOR and result.device is SOMEWHERE and any(f.device is DEFAULT for f in given.values()):
            return result.but(device=DEFAULT)
        there = owner is not None and owner.device is DEVICE  # a module computes where its parameters lie
        # What puts a batch together, `collate(samples)`, does so on the host, in whose loader it stands at other times.
        unmoved = beside_training.is_of_data(self.function.name) and not _has_moved(given, result)
        settled = result.kind in (TENSOR, SEQUENCE) and not there and (unmoved or all_on_host(given))
        return on_host(result) if settled else result

    def _particular(self) -> Fact:
        """The result for these very arguments, when the function is small and some argument is known, or where it is made."""
        function, frame = self.function, self.frame
        if frame.inlined >= _INLINED or (function.node.end_lineno or 0) - _first_line(function.node) > _LONGEST:
            return UNKNOWN
        if function.running or frame.depth > DEEPEST:
            function.module.project.cut.add(function if function.running else function.module)
            return UNKNOWN
        telling = {name: fact for name, fact in self.given.items() if _tells(fact)}
        if not telling and not self._leaves_out_a_place():
            return UNKNOWN
        here = frame.module.linted or frame.inlined > 0  # what is passed is of the file at hand
        key = (*sorted((name, hash(fact)) for name, fact in telling.items()), *self.left_out)
        if here and key in function.calls:
            return function.calls[key]
        if here and len(function.calls) >= _PARTICULAR:
            return UNKNOWN
        result = self._run()
        if here:
            function.calls[key] = result
            function.module.project.particular.add(function)
        return result

    def _run(self) -> Fact:
        function, frame = self.function, self.frame
        with Settling(function, function):
            inner = Frame(function.module, function, outer_of(function), None, frame.depth + 1)
            inner.inlined = frame.inlined + 1
            inner.used = used(function)
            bind_parameters(function, inner)
            inner.env.update(self.left_out)
            for name, fact in self.given.items():
                self._pass(inner, name, fact)
            execute(inner, function.node.body)
            return conclude(function, inner)

    def _pass(self, inner: Frame, name: str, fact: Fact) -> None:
        """Give a parameter what is passed for it, in place of what was known without."""
        known = inner.env.get(name)
        noted = name in self.function.passed
        surer = known is not None and known.kind is fact.kind is TENSOR and known.confidence > fact.confidence
        if known is not None and surer and (name in inner.used or not noted):
            inner.env[name] = fact.but(confidence=known.confidence)  # what its uses say still holds
        elif fact.kind is not NOTHING_KNOWN:
            inner.env[name] = fact
        elif known is not None and noted and name not in inner.used:
            del inner.env[name]  # only what others pass

    def _leaves_out_a_place(self) -> bool:
        return "device" in self.left_out or ON_HOST in self.left_out.values()

    def _guesses(self) -> bool:
        """Whether a guess is passed where others pass what is known: `default(flag, True)` gives each what it passed."""
        return any(fact.kind is TENSOR and fact.confidence == 1 for fact in self.given.values())

    def _unlike_others(self) -> bool:
        """Whether what is passed is not known to be a tensor, and only other callers say that it may be one."""
        passed = self.function.passed
        return bool(passed) and any(
            fact.kind in (NOTHING_KNOWN, SCALAR)
            and passed.get(name, UNKNOWN).kind is TENSOR
            and name not in used(self.function)
            for name, fact in self.given.items()
        )


def _tells(fact: Fact) -> bool:
    """Whether a function may give something else for an argument; for a loader where that brings its batches to the device."""
    return fact.kind in _TELLING or (fact.device is DEVICE and fact.ref == LOADER)


def _has_moved(given: dict[str, Fact], result: Fact) -> bool:
    """Whether something that is passed, or some of what comes of it, lies on a device."""
    return any(fact.device is DEVICE for fact in (*given.values(), result, *result.elements))


def all_on_host(given: dict[str, Fact]) -> bool:
    """Whether tensors are passed, all from the host: operations do not mix devices, so what comes of them lives there too."""
    found = False
    for fact in given.values():
        if fact.kind is TENSOR:
            if fact.device is not HOST:
                return False
            found = True
        elif fact.kind in (SEQUENCE, MODULE) or fact.kind is NOTHING_KNOWN:
            return False
    return found


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Where a function's code begins, behind what it says of itself."""
    first = node.body[0]
    said = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return (first.end_lineno or 0) if said else node.lineno
