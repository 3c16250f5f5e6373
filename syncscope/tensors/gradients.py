"""Backward passes that wait: the gradient of `x[mask]`, or of what a tensor of the host picks, looks for the positions again.

The loss is followed back through the names that it is made of, and into the functions of the project that they come from:
the model's `forward`, a loss, what these call. What is computed without gradients, or detached, is not followed.
"""

from __future__ import annotations

import ast
import os
import re
from itertools import islice
from typing import NamedTuple

from syncscope.model.fact import Emitted, Fact
from syncscope.model.ops import Op
from syncscope.project import conventions
from syncscope.project.modules import ProjectFunction
from syncscope.project.names import find_method
from syncscope.project.of_file import kept
from syncscope.project.syntax import dotted, last_word, name_of, walk
from syncscope.tensors.call import Call
from syncscope.tensors.facts import BOOL, HOST, INT, MODULE, SOMEWHERE, TENSOR, spread, tensor
from syncscope.tensors.frame import Frame, evaluate
from syncscope.tensors.functions import run_apart
from syncscope.tensors.instances import Bound, Instance
from syncscope.tensors.made_of import GIVEN, LEAVES, SHAPES, differentiable, given_back, made_of, statements
from syncscope.tensors.of_a_batch import SHAPING

BACKWARD = frozenset(("backward", "manual_backward"))
_WAITING = frozenset((Op.MASK_READ, Op.MASK_WRITE, Op.INDEX_HOST))
_DEEPEST, _MOST = 6, 60  # calls into calls, and functions that are looked into for one backward pass
# calls, or selections, of which it is asked what they are made of: all that is before each is gone through
_ASKED = 200
_DATA = re.compile(
    r"(^|_)(prepare|unpack|collate|pre_?process|load|sample|fetch|next|get|to|device|batch|augment)(_|$)"
)  # methods that give what is trained on


_Key = tuple[ProjectFunction, int | None, frozenset[str]]
_Inside = tuple[tuple[Emitted, ...], dict[int, ProjectFunction]]


class _Found(NamedTuple):
    """An expression whose gradient waits, and the function that it stands in."""

    node: ast.expr
    function: ProjectFunction | None


def passed_back(call: Call, loss: ast.expr | None) -> None:
    """`loss.backward()` and its kin: the host waits in it where a selection that waits passes a gradient back."""
    frame = call.frame
    if loss is not None:
        _lies_anywhere(frame, loss)
    if frame.waits is None or loss is None or frame.function is None:
        return
    found = _behind(frame, loss, call.node)
    if found is not None:
        call.emit(Op.BACKWARD, loss, tensor(confidence=2, why=_words(found, frame)))


def _lies_anywhere(frame: Frame, loss: ast.expr) -> None:
    """What is trained lies where its parameters do: that a loss is on the host is a guess at best, made of its batch."""
    for each in walk(loss):
        path = dotted(each) if isinstance(each, (ast.Name, ast.Attribute)) else ""
        known = frame.env.get(path)
        if known is not None and known.kind is TENSOR and known.device is HOST:
            frame.env[path] = known.but(device=SOMEWHERE, confidence=1)


def _words(found: _Found, frame: Frame) -> str:
    text = " ".join(ast.unparse(found.node).split())
    if found.function is None:
        return f"the gradient of `{text}`, line {found.node.lineno}, looks for the positions again"
    module = found.function.module
    file = "" if module is frame.module else f"{os.path.basename(module.path)}, "
    where = f"in `{found.function.name}`, {file}line {found.node.lineno}"
    return f"the gradient of `{text}` {where}, looks for the positions again"


def _behind(frame: Frame, loss: ast.expr, backward: ast.AST) -> _Found | None:
    """What waits for its gradient among what a loss is made of in this function, and in those that it calls for that."""
    root = frame.function.node  # type: ignore[union-attr]  # asked before
    made = list(made_of(root, loss, backward.lineno))  # type: ignore[attr-defined]
    nodes = {id(each) for part in made for each in differentiable(part.expression)}
    waits = (wait for wait in (frame.waits or {}).values() if id(wait.node) in nodes and _has_gradient(wait))
    for wait in islice(waits, _ASKED):
        if _trained(frame, wait.node.value):  # type: ignore[attr-defined]
            return _Found(wait.node, None)  # type: ignore[arg-type]
    seen: set[_Key] = {(frame.function, None, frozenset())}  # type: ignore[arg-type]
    own = _Given(frame.function, frozenset(frame.function.names))  # type: ignore[arg-type, union-attr]
    calls = ((part, each) for part in made for each in differentiable(part.expression) if isinstance(each, ast.Call))
    for part, each in islice(calls, _ASKED):
        if _passes_on(frame, each):
            at = part.at if each is part.expression else None
            target = _called(frame, each)
            found = _inside(own.by(each, target), at, 1, seen) if target is not None else None
            if found is not None:
                return found
    return None


def _passes_on(frame: Frame, call: ast.Call) -> bool:
    """Whether a call passes a gradient on to what it is given, or to a module: what takes a batch apart does not."""
    if isinstance(call.func, ast.Attribute):
        return _DATA.search(call.func.attr) is None
    of_module = _fact(frame, call.func).kind is MODULE
    return of_module or any(_trained(frame, each) for each in (*call.args, *(k.value for k in call.keywords)))


def _trained(frame: Frame, expression: ast.expr) -> bool:
    """Whether something that most likely has parameters is among what an expression is made of: a batch has none."""
    made = made_of(frame.function.node, expression, expression.lineno)  # type: ignore[union-attr]  # asked before
    return any(
        isinstance(node, ast.Call) and _has_parameters(frame, node.func)
        for part in made
        for node in differentiable(part.expression)
    )


def _has_parameters(frame: Frame, func: ast.expr) -> bool:
    """Whether what is called is a module, what people call one, or something of an object that may hold one."""
    name = name_of(func)
    if name == "forward" or name in conventions.MODELS:
        return True
    if dotted(func).startswith("self."):
        return _DATA.search(name) is None and name not in SHAPING  # `self.advantages.reshape(-1)` has none
    return bool(dotted(func)) and _fact(frame, func).kind is MODULE


def _base(target: ast.expr) -> ast.expr:
    """What is picked from: `x` of `x[0][mask]`."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return target


class _Given(NamedTuple):
    """A function, and the names of its parameters that a call gives something for."""

    function: ProjectFunction
    names: frozenset[str]

    def by(self, call: ast.Call, called: ProjectFunction) -> _Given:
        """The same of a function that this one calls; what it was not given itself, it does not hand on."""
        bound = called.cls is not None and "staticmethod" not in called.decorators()
        plain = not any(isinstance(each, ast.Starred) for each in call.args)
        by_place = zip(called.names[bound:], call.args, strict=False) if plain else ()
        by_name = ((each.arg, each.value) for each in call.keywords if each.arg is not None)
        return _Given(called, frozenset(name for name, value in (*by_place, *by_name) if self._has(value)))

    def _has(self, value: ast.expr) -> bool:
        if isinstance(value, ast.Name) and self.function.left_out.get(value.id, "") is None:
            return value.id in self.names
        return not (isinstance(value, ast.Constant) and value.value is None)

    def left_out(self) -> set[int]:
        """The nodes that run only where an argument is given that was left out, in `if mask is not None`, or no training is."""
        arms = (each for each in statements(self.function.node) if isinstance(each, ast.If))
        return {id(node) for arm in arms for inner in self._closed(arm) for node in walk(inner)}

    def _closed(self, arm: ast.If) -> list[ast.stmt]:
        match arm.test:
            case ast.Attribute(attr="training"):
                return arm.orelse
            case ast.UnaryOp(op=ast.Not(), operand=ast.Attribute(attr="training")):
                return arm.body
        return arm.body if any(self._is_left_out(each) for each in walk(arm.test)) else []

    def _is_left_out(self, test: ast.AST) -> bool:
        match test:
            case ast.Compare(left=ast.Name(id=name), ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
                return name not in self.names and self.function.left_out.get(name, "") is None
        return False


def _has_gradient(wait: Emitted) -> bool:
    """Whether what is picked from most likely has a gradient: no integers, and nothing that people call a target."""
    node = wait.node
    if wait.op not in _WAITING or wait.confidence < 2 or not isinstance(node, ast.Subscript):
        return False
    if wait.op is Op.INDEX_HOST and wait.fact.dtype in (INT, BOOL):
        return False
    base = node.value
    if any(name_of(each) in LEAVES | SHAPES for each in walk(base)):
        return False
    return GIVEN.search(last_word(_base(base)).lower()) is None


def _called(frame: Frame, call: ast.Call) -> ProjectFunction | None:
    """The function of the project that a call runs: of a module its `forward`, of `checkpoint(f, x)` that of `f`."""
    func = call.func
    if name_of(func) == "checkpoint" and call.args:
        func = call.args[0]
    return _target(_fact(frame, func)) if dotted(func) else None


def _fact(frame: Frame, node: ast.expr) -> Fact:
    """What a name means by now; nothing is noted of it."""
    seen, waits, frame.seen, frame.waits = frame.seen, frame.waits, None, None
    try:
        return evaluate(frame, node)
    finally:
        frame.seen, frame.waits = seen, waits


def _target(fact: Fact) -> ProjectFunction | None:
    fact = spread(fact) or fact
    ref = fact.ref
    if isinstance(ref, Bound):
        ref = ref.function
    elif isinstance(ref, Instance):
        ref = find_method(ref.cls, "forward" if fact.kind is MODULE else "__call__")
    if not isinstance(ref, ProjectFunction) or not conventions.KERNELS.isdisjoint(ref.decorators()):
        return None
    return None if ref.decorators() & {"no_grad", "inference_mode"} else ref


def _inside(given: _Given, at: int | None, depth: int, seen: set[_Key]) -> _Found | None:
    """What waits for its gradient in what a function gives back, or one element of that, and in what it calls for it."""
    function = given.function
    if (function, at, given.names) in seen or depth > _DEEPEST or len(seen) > _MOST:
        return None
    seen.add((function, at, given.names))
    apart = given.left_out()
    made = [(part, node) for part in given_back(function.node, at) for node in differentiable(part.expression)]
    made = [(part, node) for part, node in made if id(node) not in apart]
    here = {id(node) for _, node in made}
    waits, called = _looked_into(function)
    for wait in waits:
        if id(wait.node) in here and _has_gradient(wait):
            return _Found(wait.node, function)  # type: ignore[arg-type]
    for part, node in made:
        target = called.get(id(node))  # most nodes call nothing of the project
        at = part.at if node is part.expression else None
        found = _inside(given.by(node, target), at, depth + 1, seen) if target is not None else None  # type: ignore[arg-type]
        if found is not None:
            return found
    return None


def _looked_into(function: ProjectFunction) -> _Inside:
    """Where a function waits, whoever calls it, and the functions of the project that its calls run, by their `id`."""
    return ((), {}) if function.running else _run_once(function)  # of one that runs it is asked again later


@kept(64)  # each holds all of its file
def _run_once(function: ProjectFunction) -> _Inside:
    try:
        frame = run_apart(function)
        calls = [each for each in walk(function.node) if isinstance(each, ast.Call)]
        called = {id(each): of for each in calls if (of := _called(frame, each)) is not None}
    except RecursionError:
        return (), {}
    return tuple((frame.waits or {}).values()), called
