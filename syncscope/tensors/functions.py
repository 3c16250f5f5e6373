"""Running a function over facts: its parameters as far as they are known, its body once, what it gives back."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from syncscope.model.fact import UNKNOWN, Emitted, Fact
from syncscope.model.ops import Op
from syncscope.project import conventions
from syncscope.project.modules import ProjectFunction
from syncscope.project.of_file import kept
from syncscope.project.syntax import walk
from syncscope.tensors.annotations import annotated
from syncscope.tensors.facts import (
    ARRAY,
    BOOL,
    DEFAULT,
    NONE,
    NOTHING_KNOWN,
    SCALAR,
    SEQUENCE,
    TENSOR,
    is_distribution,
    like,
)
from syncscope.tensors.frame import Frame, execute
from syncscope.tensors.joins import join
from syncscope.tensors.of_a_batch import of_a_batch
from syncscope.tensors.parameters import bind_parameters
from syncscope.tensors.run_on_host import runs_on_host
from syncscope.tensors.settling import Settling
from syncscope.tensors.usage import usage_of

DEEPEST = 16  # calls into calls: what lies deeper is unknown


def run(function: ProjectFunction, depth: int = 0) -> Fact:
    """What a function gives back for what is known of its parameters; its waits are kept in `function.sites`."""
    if function.result is not None:
        return function.result
    module = function.module
    if function.running or depth > DEEPEST:
        module.project.cut.add(function if function.running else module)
        return promised(function)
    function.news = False
    with Settling(function, function):
        waits: dict[tuple[int, Op], Emitted] | None = {} if module.linted and not runs_on_host(function) else None
        frame = Frame(module, function, outer_of(function), waits, depth)
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
    """Whether two facts say the same in the same words, but for what they were derived from; a batch lies on the host."""
    return one is other or (
        one == other
        and one.ref == other.ref
        and one.provenance == other.provenance
        and all(map(_alike, one.elements, other.elements))
        and of_a_batch(one) == of_a_batch(other)
    )


def waits_inside(function: ProjectFunction) -> bool:
    """Whether a function waits, most likely, in whatever calls it: of one that TorchScript has compiled no line is seen to."""
    if not function.module.linted:
        return _waits_elsewhere(function)
    return any(wait.confidence > 1 and (wait.heat is None or wait.heat.hot) for wait in function.sites.values())


@kept(64)
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


def outer_of(function: ProjectFunction) -> Frame | None:
    """The frame that a function was defined in, of one inside another."""
    return function.closure if isinstance(function.closure, Frame) else None


def used(function: ProjectFunction) -> dict[str, int]:
    """How the names of a function are used, a parameter until it is bound anew: the rest tells nothing of what is given."""
    if function.used is None:
        node = function.node
        usage = usage_of(function.module.parsed)
        function.used = usage.between(node.lineno, node.end_lineno or node.lineno)
        arguments = node.args
        given = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        parameters = function.used.keys() & {each.arg for each in given if each is not None}
        for name, line in _bound_anew(node, parameters) if parameters else ():
            if name not in usage.between(node.lineno, line):
                function.used.pop(name, None)
    return function.used


def _bound_anew(node: ast.FunctionDef | ast.AsyncFunctionDef, parameters: Collection[str]) -> Iterator[tuple[str, int]]:
    """Those of its parameters that a function binds anew in each call, to what is not made of them, and the line of that."""
    for each in node.body:
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in parameters:
                if not any(isinstance(part, ast.Name) and part.id == name for part in walk(value)):
                    yield name, each.end_lineno or each.lineno


def finish(frame: Frame) -> None:
    """Run the functions that were defined inside, now that the names around them are known."""
    for inner in frame.nested:
        run(inner, frame.depth)


def promised(function: ProjectFunction) -> Fact:
    """What the annotation of a function says it returns."""
    return annotated(function.module, function.node.returns, f"`{function.name}` is annotated to return a tensor")


def conclude(function: ProjectFunction, frame: Frame) -> Fact:
    """The join of what was returned, and what the annotation adds."""
    if isinstance(function.node, ast.AsyncFunctionDef):
        return UNKNOWN
    found = _returned(frame) or (UNKNOWN if _is_left_to_others(function.node) else NONE)
    if function.node.returns is None or found.kind is ARRAY or is_distribution(found):
        return found  # it tells which one, whatever the annotation says
    said = promised(function)
    if said.kind is TENSOR and found.kind is TENSOR:
        surer = said.confidence > found.confidence
        return like(found, said.provenance, confidence=said.confidence) if surer else found
    if said.kind is SCALAR and found.kind is TENSOR and found.confidence >= 2 and said.dtype is not BOOL:
        return found  # `-> float` of what divides a norm: nothing makes a number of it
    nothing = found.kind is NOTHING_KNOWN or found is NONE
    return said if said.kind is not NOTHING_KNOWN and (nothing or said.kind is not SEQUENCE) else found


def _returned(frame: Frame) -> Fact | None:
    """The join of what was returned: a tensor, where it may be a number, is less sure to be one."""
    found: Fact | None = None
    for each in frame.returns:
        found = each if found is None else join(found, each, DEFAULT)
    numbers = [each for each in frame.returns if each.kind is SCALAR]
    if found is None or found.kind is not TENSOR or not numbers:
        return found
    asked = found.dtype is BOOL and all(each.dtype is BOOL for each in numbers)  # for tensors and numbers alike
    return like(found, confidence=min(found.confidence, 2 if asked else 1))


def _is_left_to_others(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function does nothing but perhaps raise: what is derived has another, and that gives something."""
    last = node.body[-1]
    does_nothing = isinstance(last, (ast.Pass, ast.Raise)) or (
        isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant)
    )
    return does_nothing and len(node.body) <= 2
