"""Running a function over facts: its parameters as far as they are known, its body once, what it gives back."""

from __future__ import annotations

import ast
from functools import lru_cache

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.project import conventions
from syncscope.project.modules import ProjectFunction
from syncscope.project.names import find_method
from syncscope.tensors.annotations import annotated
from syncscope.tensors.call import Call, Keywords
from syncscope.tensors.facts import (
    ARRAY,
    BOOL,
    DEFAULT,
    DEVICE,
    HOST,
    INT,
    LOADER,
    MODULE,
    NONE,
    SCALAR,
    SEQUENCE,
    SOMEWHERE,
    SPREAD,
    TENSOR,
    Tag,
    is_distribution,
    like,
    on_host,
    sequence,
    tensor,
)
from syncscope.tensors.frame import Frame, execute
from syncscope.tensors.instances import Instance
from syncscope.tensors.joins import join
from syncscope.tensors.parameters import ON_HOST, bind_parameters
from syncscope.tensors.passed import note
from syncscope.tensors.settling import Settling
from syncscope.tensors.torch import modules
from syncscope.tensors.usage import usage_of

NOTHING_KNOWN = UNKNOWN.kind
_DEEPEST = 16  # calls into calls: what lies deeper is unknown
_INLINED = 2  # of them for particular arguments
_LONGEST = 60  # lines of a function that is run for particular arguments
_PARTICULAR = 9  # times that one is run for what a file passes


def run(function: ProjectFunction, depth: int = 0) -> Fact:
    """What a function gives back for what is known of its parameters; its waits are kept in `function.sites`."""
    if function.result is not None:
        return function.result
    module = function.module
    if function.running or depth > _DEEPEST:
        module.project.cut.add(function if function.running else module)
        return promised(function)
    function.news = False
    with Settling(function, function):
        frame = Frame(module, function, _outer(function), {} if module.linted else None, depth)
        frame.used = used(function)
        bind_parameters(function, frame)
        if module.linted:
            function.bound = dict(frame.env)
        execute(frame, function.node.body)
        if module.linted:
            finish(frame)
        decorators = function.decorators()
        if conventions.KERNELS & decorators or ("compile" in decorators and _is_one_graph(function)):
            frame.waits = {}
        function.result = conclude(function, frame)
        function.sites = frame.waits or {}
        function.inner = frame.nested
    return function.result


def _is_one_graph(function: ProjectFunction) -> bool:
    """Whether `@torch.compile(fullgraph=True)` stands above it: what reads a value would end that with an error."""
    return any(
        keyword.arg == "fullgraph" and isinstance(keyword.value, ast.Constant) and keyword.value.value is True
        for each in function.node.decorator_list
        if isinstance(each, ast.Call)
        for keyword in each.keywords
    )


def knows_more(function: ProjectFunction) -> bool:
    """Whether more is known of the parameters of a function than when it was run: else it would be run in vain.

    Where nothing else is new, what is known is noted to come from what callers pass, as it would be then.
    """
    before = function.bound
    if function.closure is not None or not before:
        return True
    frame = Frame(function.module, function)
    frame.used = used(function)
    bind_parameters(function, frame)
    if frame.env.keys() != before.keys() or not all(_alike(before[name], fact) for name, fact in frame.env.items()):
        return True
    for name, fact in frame.env.items():
        if fact.kind is TENSOR and not _comes_from(fact, before[name]):  # it may pass on to itself what it was given
            before[name].source = fact.source
    return False


def _comes_from(fact: Fact | None, other: Fact) -> bool:
    """Whether a fact is another, or derived from it."""
    while fact is not None and fact is not other:
        fact = fact.source
    return fact is not None


def _alike(one: Fact, other: Fact) -> bool:
    """Whether two facts say the same in the same words, but for what they were derived from."""
    return one is other or (
        one == other
        and one.ref == other.ref
        and one.provenance == other.provenance
        and all(map(_alike, one.elements, other.elements))
    )


def waits_inside(function: ProjectFunction) -> bool:
    """Whether a function waits, most likely, in whatever calls it: of one that TorchScript has compiled no line is seen to."""
    if not function.module.linted:
        return _waits_elsewhere(function)
    return any(wait.confidence > 1 and (wait.heat is None or wait.heat.hot) for wait in function.sites.values())


@lru_cache(maxsize=64)
def _waits_elsewhere(function: ProjectFunction) -> bool:
    if function.running:
        return False
    waits = run_apart(function).waits or {}
    return any(wait.confidence > 1 and (wait.heat is None or wait.heat.hot) for wait in waits.values())


def run_apart(function: ProjectFunction) -> Frame:
    """A function that is not running, run once more whoever calls it: its waits are noted in the frame alone."""
    frame = Frame(function.module, function, waits={})
    frame.used = used(function)
    function.running = True
    try:
        bind_parameters(function, frame)
        execute(frame, function.node.body)
    finally:
        function.running = False
    return frame


def _outer(function: ProjectFunction) -> Frame | None:
    return function.closure if isinstance(function.closure, Frame) else None


def used(function: ProjectFunction) -> dict[str, int]:
    """How the names of a function are used."""
    if function.used is None:
        node = function.node
        function.used = usage_of(function.module.parsed).between(node.lineno, node.end_lineno or node.lineno)
    return function.used


def finish(frame: Frame) -> None:
    """Run the functions that were defined inside, now that the names around them are known."""
    for inner in frame.nested:
        run(inner, frame.depth)


def promised(function: ProjectFunction) -> Fact:
    """What the annotation of a function says it returns."""
    return annotated(function.module, function.node.returns, f"`{function.name}` is annotated to return a tensor")


def conclude(function: ProjectFunction, frame: Frame) -> Fact:
    """The join of what was returned, and what the annotation adds."""
    found: Fact | None = None
    for each in frame.returns:
        found = each if found is None else join(found, each, DEFAULT)
    if found is not None and found.kind is TENSOR:
        numbers = [each for each in frame.returns if each.kind is SCALAR]
        if numbers:
            asked = found.dtype is BOOL and all(each.dtype is BOOL for each in numbers)  # for tensors and numbers alike
            confidence = min(found.confidence, 2 if asked else 1)
            found = like(found, confidence=confidence)
    if isinstance(function.node, ast.AsyncFunctionDef):
        return UNKNOWN
    found = found or (UNKNOWN if _is_left_to_others(function.node) else NONE)
    told = found.kind is ARRAY or is_distribution(found)  # which one, whatever the annotation says
    if function.node.returns is not None and not told:
        said = promised(function)
        if said.kind is TENSOR and found.kind is TENSOR:
            if said.confidence > found.confidence:
                return like(found, said.provenance, confidence=said.confidence)
        elif said.kind is not NOTHING_KNOWN and (
            found.kind is NOTHING_KNOWN or found is NONE or said.kind is not SEQUENCE
        ):
            return said
    return found


def _is_left_to_others(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function does nothing but perhaps raise: what is derived has another, and that gives something."""
    last = node.body[-1]
    does_nothing = isinstance(last, (ast.Pass, ast.Raise)) or (
        isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant)
    )
    return does_nothing and len(node.body) <= 2


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
    here = function.module is frame.module
    if unasked and not here and frame.seen is None:
        return UNKNOWN
    names = function.names
    if function.cls is not None and owner is not None and "staticmethod" not in function.decorators():
        names = names[1:]
    given: dict[str, Fact] = dict(zip(names, args, strict=False))
    if keywords:
        given.update((name, fact) for name, fact in keywords.items() if name is not None)
    missing: dict[str, Fact] = {}
    if function.left_out and not (None in keywords or any(each is SPREAD for each in args)):
        missing = {
            name: NONE if value is None else ON_HOST for name, value in function.left_out.items() if name not in given
        }
    if here and not function.module.linted:
        result = run(function, frame.depth + 1)
    elif here and function.result is None and not function.running:
        note(function, given)
        result = run(function, frame.depth + 1)
    elif here:
        if note(function, given) and not function.running:
            function.news = True
            frame.module.functions.append(function)
        result = function.result if function.result is not None else promised(function)
    elif function.node.returns is not None:
        result = promised(function)
        if result.kind is not SEQUENCE and result.kind is not TENSOR and result.kind is not NOTHING_KNOWN:
            return result
        better = run(function, frame.depth + 1)
        result = better if better.kind is not NOTHING_KNOWN else result
    else:
        result = run(function, frame.depth + 1)
    unlike = here and _unlike_others(function, given)
    if (
        result.kind is NOTHING_KNOWN
        or (result.kind is TENSOR and (result.confidence < 2 or (here and (_guesses(given) or unlike))))
        or result.kind is SEQUENCE
    ):
        better = particular(function, frame, given, missing)
        if better.kind is not NOTHING_KNOWN:
            result = better
        elif result.kind is TENSOR and result.confidence > 1 and (unlike or len(function.calls) >= _PARTICULAR):
            result = result.but(confidence=1)  # called in too many ways, or too unlike, to say more of this one
    elif result.kind is TENSOR and result.device is SOMEWHERE and _places(function, missing, result):
        better = particular(function, frame, given, missing)
        if better.kind is TENSOR and (better.device is HOST or result.ref is Tag.PERHAPS_OF_HOST):
            result = better if better.device is not HOST else result.but(device=HOST)
    if result.kind is SEQUENCE and conventions.of_a_matcher(function.name):
        why = f"`{function.name}` hands on what a matcher found, on the host"
        return sequence(*(tensor(INT, HOST, 2, why, ndim=1) for _ in result.elements))
    if result.kind is TENSOR and result.device is SOMEWHERE and any(f.device is DEFAULT for f in given.values()):
        return result.but(device=DEFAULT)
    there = owner is not None and owner.device is DEVICE  # a module computes where its parameters lie
    settled = result.kind in (TENSOR, SEQUENCE) and not there and all_on_host(given)
    return on_host(result) if settled else result


def _places(function: ProjectFunction, missing: dict[str, Fact], result: Fact) -> bool:
    """Whether what a call leaves out may say where its result lies: `device=None`, or `x=None` of what goes to `x.device`."""
    unsure = result.ref is Tag.PERHAPS_OF_HOST and bool(function.left_out)
    return unsure or "device" in missing or ON_HOST in missing.values()


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


def particular(function: ProjectFunction, frame: Frame, given: dict[str, Fact], missing: dict[str, Fact]) -> Fact:
    """The result for these very arguments, when the function is small and some argument is known, or where it is made."""
    node = function.node
    if frame.inlined >= _INLINED or (node.end_lineno or 0) - _first_line(node) > _LONGEST:
        return UNKNOWN
    if function.running or frame.depth > _DEEPEST:
        function.module.project.cut.add(function if function.running else function.module)
        return UNKNOWN
    telling = {
        name: fact
        for name, fact in given.items()
        if fact.kind in (TENSOR, ARRAY, SEQUENCE, MODULE, SCALAR) or (fact.device is DEVICE and fact.ref == LOADER)
    }
    if not telling and "device" not in missing and ON_HOST not in missing.values():
        return UNKNOWN
    here = frame.module.linted or frame.inlined > 0  # what is passed is of the file at hand
    key = (*sorted((name, hash(fact)) for name, fact in telling.items()), *missing)
    if here and key in function.calls:
        return function.calls[key]
    if here and len(function.calls) >= _PARTICULAR:
        return UNKNOWN
    with Settling(function, function):
        inner = Frame(function.module, function, _outer(function), None, frame.depth + 1)
        inner.inlined = frame.inlined + 1
        inner.used = used(function)
        bind_parameters(function, inner)
        inner.env.update(missing)
        for name, fact in given.items():
            known = inner.env.get(name)
            if (
                known is not None
                and known.kind is TENSOR
                and fact.kind is TENSOR
                and known.confidence > fact.confidence
                and (name in inner.used or name not in function.passed)
            ):
                inner.env[name] = fact.but(confidence=known.confidence)  # what its uses say still holds
            elif fact.kind is not NOTHING_KNOWN:
                inner.env[name] = fact
            elif known is not None and name in function.passed and name not in inner.used:
                del inner.env[name]  # only what others pass
        execute(inner, node.body)
        result = conclude(function, inner)
    if here:
        function.calls[key] = result
        function.module.project.particular.add(function)
    return result


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Where a function's code begins, behind what it says of itself."""
    first = node.body[0]
    said = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return (first.end_lineno or 0) if said else node.lineno


def _guesses(given: dict[str, Fact]) -> bool:
    """Whether a guess is passed where others pass what is known: `default(flag, True)` gives each what it passed."""
    return any(fact.kind is TENSOR and fact.confidence == 1 for fact in given.values())


def _unlike_others(function: ProjectFunction, given: dict[str, Fact]) -> bool:
    """Whether what is passed is not known to be a tensor, and only other callers say that it may be one."""
    return bool(function.passed) and any(
        fact.kind in (NOTHING_KNOWN, SCALAR)
        and function.passed.get(name, UNKNOWN).kind is TENSOR
        and name not in used(function)
        for name, fact in given.items()
    )


def call_module(call: Call, module: Fact) -> Fact:
    """What calling an nn.Module gives: its own `forward` when it is of this project, else what torch's gives."""
    ref = module.ref
    if not isinstance(ref, Instance):
        return modules.result(module, call.node, call.args)
    method = find_method(ref.cls, "forward") or find_method(ref.cls, "__call__")
    if method is not None:
        result = call_function(method, call.frame, call.args, call.keywords, module, call.unasked)
        if result.kind is not NOTHING_KNOWN:
            return result
    return tensor(confidence=1, why=call.node)
