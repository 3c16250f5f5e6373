"""Backward passes that wait: the gradient of `x[mask]`, or of what a tensor of the host picks, looks for the positions again.

The loss is followed back through the names that it is made of, and into the functions of the project that they come from:
the model's `forward`, a loss, what these call. What is computed without gradients, or detached, is not followed.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from syncscope.heat.loops import without_gradients
from syncscope.model.fact import Emitted, Fact
from syncscope.model.ops import Op
from syncscope.project import conventions
from syncscope.project.modules import ProjectFunction
from syncscope.project.names import find_method
from syncscope.project.syntax import dotted, last_word, name_of, walk
from syncscope.tensors.call import Call
from syncscope.tensors.facts import BOOL, INT, MODULE, tensor
from syncscope.tensors.frame import Frame, evaluate, execute
from syncscope.tensors.functions import used
from syncscope.tensors.instances import Bound, Instance
from syncscope.tensors.parameters import bind_parameters

BACKWARD = frozenset(("backward", "manual_backward"))
_WAITING = frozenset((Op.MASK_READ, Op.INDEX_HOST))
_DEEPEST, _MOST = 6, 60  # calls into calls, and functions that are looked into for one backward pass
_LEAVES = frozenset("detach item tolist numpy size dim numel".split())  # methods that pass no gradient on
_SHAPES = frozenset("shape device dtype ndim data".split())
_FILLING = frozenset("append extend add insert update setdefault".split())
_GIVEN = re.compile(
    r"(^|_)(masks?|ids?|idxs?|index|indices|lengths?|lens?|weights?|actions?|rewards?|returns?|dones?|valid|positions?|y|"
    r"targets?|labels?|gts?|truth)$|^(targets?|labels?|gts?|true|ground)_"
)  # what a loss is told, and has no gradient
_DATA = re.compile(
    r"(^|_)(prepare|unpack|collate|pre_?process|load|sample|fetch|next|get|to|device|batch|augment)(_|$)"
)  # methods that give what is trained on


class _Found(NamedTuple):
    """An expression whose gradient waits, and the function that it stands in."""

    node: ast.expr
    function: ProjectFunction | None


def passed_back(call: Call, loss: ast.expr | None) -> None:
    """`loss.backward()` and its kin: the host waits in it where a selection that waits passes a gradient back."""
    frame = call.frame
    if frame.waits is None or loss is None or frame.function is None:
        return
    found = _behind(frame, loss, call.node)
    if found is not None:
        call.emit(Op.BACKWARD, loss, tensor(confidence=2, why=_words(found, frame)))


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
    made = list(_made_of(root, loss, backward.lineno))  # type: ignore[attr-defined]
    nodes = {id(each) for expression in made for each in _differentiable(expression)}
    for wait in (frame.waits or {}).values():
        if id(wait.node) in nodes and _has_gradient(wait) and _trained(frame, wait.node.value):  # type: ignore[attr-defined]
            return _Found(wait.node, None)  # type: ignore[arg-type]
    seen: set[ProjectFunction] = {frame.function}  # type: ignore[arg-type]
    for expression in made:
        for each in _differentiable(expression):
            if isinstance(each, ast.Call) and _passes_on(frame, each):
                found = _inside(_called(frame, each), 1, seen)
                if found is not None:
                    return found
    return None


def _made_of(root: ast.AST, loss: ast.expr, line: int) -> Iterator[ast.expr]:
    """The expressions that a loss is made of, one after another, from the last one back."""
    wanted = set(_names(loss))  # a name, and the key of an item of it
    yield loss
    statements = (s for s in _statements(root) if s.lineno <= line)
    for statement in sorted(statements, key=lambda s: s.lineno, reverse=True):
        for target, value in _bound(statement):
            if any(_one(name, other) for name in _names(target) for other in wanted):
                wanted.update(_names(value))
                yield value


def _passes_on(frame: Frame, call: ast.Call) -> bool:
    """Whether a call passes a gradient on to what it is given, or to a module: what takes a batch apart does not."""
    if isinstance(call.func, ast.Attribute):
        return _DATA.search(call.func.attr) is None
    of_module = _fact(frame, call.func).kind is MODULE
    return of_module or any(_trained(frame, each) for each in (*call.args, *(k.value for k in call.keywords)))


def _trained(frame: Frame, expression: ast.expr) -> bool:
    """Whether something that most likely has parameters is among what an expression is made of: a batch has none."""
    made = _made_of(frame.function.node, expression, expression.lineno)  # type: ignore[union-attr]  # asked before
    return any(
        isinstance(node, ast.Call) and _has_parameters(frame, node.func)
        for each in made
        for node in _differentiable(each)
    )


def _has_parameters(frame: Frame, func: ast.expr) -> bool:
    """Whether what is called is a module, what people call one, or something of an object that may hold one."""
    name = name_of(func)
    if name == "forward" or name in conventions.MODELS:
        return True
    if dotted(func).startswith("self."):
        return _DATA.search(name) is None
    return bool(dotted(func)) and _fact(frame, func).kind is MODULE


def _bound(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    match statement:
        case ast.Assign(targets=targets, value=value):
            yield from ((target, value) for target in targets)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
            yield target, value
        case ast.For(target=target, iter=value):
            yield target, value
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr=attr), args=args)) if attr in _FILLING:
            yield from ((target, value) for value in args)


def _base(target: ast.expr) -> ast.expr:
    """What is picked from: `x` of `x[0][mask]`."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return target


@lru_cache(maxsize=16)
def _statements(root: ast.AST) -> tuple[ast.stmt, ...]:
    """The statements of a function that gradients go through: none in `with torch.no_grad()`, none of a function in it."""
    found: list[ast.stmt] = []
    todo: list[ast.AST] = [root]
    for node in todo:
        for each in ast.iter_child_nodes(node):
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
                continue
            if isinstance(each, (ast.With, ast.AsyncWith)) and without_gradients(each):
                continue
            if isinstance(each, ast.stmt):
                found.append(each)
            todo.append(each)
    return tuple(found)


def _always(function: ProjectFunction) -> Iterator[ast.stmt]:
    """Those of a function that run whatever it is given: none in `if mask is not None` of a mask that may be left out."""
    apart: set[int] = set()
    for statement in _statements(function.node):
        if isinstance(statement, ast.If) and any(_is_given(each, function) for each in walk(statement.test)):
            apart.update(id(each) for inner in statement.body for each in walk(inner))
        if id(statement) not in apart:
            yield statement


def _is_given(test: ast.AST, function: ProjectFunction) -> bool:
    match test:
        case ast.Compare(left=ast.Name(id=name), ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return function.left_out.get(name, "") is None
    return False


def _differentiable(expression: ast.expr) -> Iterator[ast.AST]:
    """The nodes of an expression that pass a gradient on."""
    todo: list[ast.AST] = [expression]
    for node in todo:
        match node:
            case ast.Call(func=ast.Attribute(attr=attr)) if attr in _LEAVES:
                continue
            case ast.Attribute(attr=attr) if attr in _SHAPES:
                continue
            case ast.Compare() | ast.Lambda():
                continue
            case ast.Subscript(value=value, slice=index):
                yield node
                item = isinstance(index, ast.Constant) and isinstance(index.value, str) and dotted(value)
                todo += [] if item else [value]
                continue
        yield node
        todo += ast.iter_child_nodes(node)


_Name = tuple[str, object]


def _names(expression: ast.expr) -> Iterator[_Name]:
    """The names in it, `losses` as a whole or one item of it: `losses["box"]`."""
    for each in _differentiable(expression):
        match each:
            case ast.Subscript(value=value, slice=ast.Constant(value=str(key))):
                yield dotted(value), key
            case ast.Name() | ast.Attribute() if (path := dotted(each)) and not _GIVEN.search(name_of(each)):
                yield path, None


def _one(name: _Name, other: _Name) -> bool:
    """Whether two may be the same: a whole is made of each of its items."""
    return name[0] == other[0] != "" and (name[1] == other[1] or None in (name[1], other[1]))


def _has_gradient(wait: Emitted) -> bool:
    """Whether what is picked from most likely has a gradient: no integers, and nothing that people call a target."""
    node = wait.node
    if wait.op not in _WAITING or wait.confidence < 2 or not isinstance(node, ast.Subscript):
        return False
    if wait.op is Op.INDEX_HOST and wait.fact.dtype in (INT, BOOL):
        return False
    base = node.value
    if any(name_of(each) in _LEAVES | _SHAPES for each in walk(base)):
        return False
    return _GIVEN.search(last_word(_base(base)).lower()) is None


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
    ref = fact.ref
    if isinstance(ref, Bound):
        ref = ref.function
    elif isinstance(ref, Instance):
        ref = find_method(ref.cls, "forward" if fact.kind is MODULE else "__call__")
    if not isinstance(ref, ProjectFunction) or not conventions.KERNELS.isdisjoint(ref.decorators()):
        return None
    return None if ref.decorators() & {"no_grad", "inference_mode"} else ref


def _inside(function: ProjectFunction | None, depth: int, seen: set[ProjectFunction]) -> _Found | None:
    """What waits for its gradient in a function, or in what it calls."""
    if function is None or function in seen or depth > _DEEPEST or len(seen) > _MOST:
        return None
    seen.add(function)
    here = {id(node) for statement in _always(function) for node in _own(statement)}
    waits, calls = _looked_into(function)
    for wait in waits:
        if id(wait.node) in here and _has_gradient(wait):
            return _Found(wait.node, function)  # type: ignore[arg-type]
    for other in calls:
        found = _inside(other, depth + 1, seen)
        if found is not None:
            return found
    return None


def _own(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of the expressions that stand in a statement itself."""
    for each in ast.iter_child_nodes(statement):
        if isinstance(each, ast.expr):
            yield from _differentiable(each)


@lru_cache(maxsize=256)
def _looked_into(function: ProjectFunction) -> tuple[tuple[Emitted, ...], tuple[ProjectFunction, ...]]:
    """Where a function waits, whoever calls it, and the functions of the project that it calls."""
    if function.running:
        return (), ()
    frame = Frame(function.module, function, waits={})
    frame.used = used(function)
    function.running = True
    try:
        bind_parameters(function, frame)
        execute(frame, function.node.body)
        nodes = (node for statement in _statements(function.node) for node in _own(statement))
        called = [_called(frame, node) for node in nodes if isinstance(node, ast.Call)]
    except RecursionError:
        return (), ()
    finally:
        function.running = False
    return tuple((frame.waits or {}).values()), tuple(dict.fromkeys(each for each in called if each is not None))
