"""Statements: bindings, loops, blocks and definitions; `branches.py` has those that go two ways."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from syncscope.heat import arms, judge, loops
from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.heat import Heat, Reason
from syncscope.project import conventions
from syncscope.project.modules import Class, ProjectFunction
from syncscope.project.names import find_method, imported, lookup
from syncscope.project.syntax import dotted, name_of, statements, without_gradients
from syncscope.tensors import patterns, timing
from syncscope.tensors.bindings import ann_assign, assign, aug_assign, bind
from syncscope.tensors.branches import branch, merge, unlike
from syncscope.tensors.conditions import condition
from syncscope.tensors.facts import (
    BATCH,
    DEVICE,
    HOST,
    INTEGER,
    LOADER,
    MODULE,
    NONE,
    OTHER,
    SOMEWHERE,
    TENSOR,
    sequence,
)
from syncscope.tensors.frame import Frame, Later, evaluate, execute, heat_of
from syncscope.tensors.function_calls import call_function
from syncscope.tensors.instances import Instance
from syncscope.tensors.joins import element, iterated_over
from syncscope.tensors.loaders import loader_of, trained_on
from syncscope.tensors.narrowing import NOTHING, Env, learnt
from syncscope.tensors.unmoved import shows_no_device

_UNBOUND = (None,)


def returned(frame: Frame, node: ast.Return) -> None:
    """`return value`."""
    frame.returns.append(evaluate(frame, node.value) if node.value is not None else NONE)
    frame.dead = True


def expression(frame: Frame, node: ast.Expr) -> None:
    """An expression for its effect."""
    value = node.value
    if value.__class__ is not ast.Constant:
        frame.unasked = value
        frame.table[value.__class__](frame, value)
        if value.__class__ is ast.Call:
            func = value.func
            word = func.attr if func.__class__ is ast.Attribute else func.id if func.__class__ is ast.Name else ""
            if word in _ENDS:
                frame.dead = dotted(func) in ("sys.exit", "os._exit", "exit", "quit")
            elif word in _CHECKS and value.args:
                frame.env.update(learnt(frame, value.args[0])[0])


_ENDS = frozenset(("exit", "quit", "_exit"))
_CHECKS = frozenset(("_assert", "_check"))  # `torch._assert(x.dim() == 3, "an image, please")`


def raised(frame: Frame, node: ast.Raise) -> None:
    """`raise`: what an error message reads costs nothing until it is raised."""
    frame.dead = True
    if node.exc is None or frame.seen is None:
        return
    before, frame.around = frame.around, Reason.RAISES()
    waits, frame.waits = frame.waits, None  # what an error message reads costs nothing until it is raised
    evaluate(frame, node.exc)
    frame.around, frame.waits = before, waits


def stopped(frame: Frame, node: ast.stmt) -> None:
    """`break`, `continue`: the rest of the block is not reached."""
    frame.dead = True


def loop_while(frame: Frame, node: ast.While) -> None:
    """`while`: the body once, and again when it changed a tensor that it starts from."""
    before = frame.around
    frame.around = Later(lambda: _around_loop(frame, node, False, heat_of(before)))
    taught: list[Env] = []

    def test() -> None:
        condition(frame, node.test)
        when, otherwise = learnt(frame, node.test)
        taught.append(otherwise)
        frame.env.update(when)

    _go_through(frame, node, test)
    frame.env.update(taught[0])
    frame.around = before
    if node.orelse:
        execute(frame, node.orelse)
    endless = isinstance(node.test, ast.Constant) and node.test.value
    frame.dead = bool(endless) and not any(isinstance(each, ast.Break) for each in statements(node))


def loop_for(frame: Frame, node: ast.For | ast.AsyncFor) -> None:
    """`for`: like `while`; a loop over a loader is hot."""
    over = evaluate(frame, node.iter)
    each, loader = iterated(frame, node.iter, over, trained_on(frame, node))
    if loader and _has_no_tensor(frame) and frame.function is not None and shows_no_device(frame.function):
        frame.counts = True
    before = frame.around
    frame.around = Later(lambda: _around_loop(frame, node, loader, heat_of(before)))
    _go_through(frame, node, lambda: bind(frame, node.target, each))
    frame.around = before
    if node.orelse:
        execute(frame, node.orelse)
    frame.dead = False


def _go_through(frame: Frame, node: ast.For | ast.AsyncFor | ast.While, begin: Callable[[], None]) -> None:
    """The body of a loop once, and again when it changed a tensor that it starts from; each pass begins so."""
    start = dict(frame.env)
    begin()
    execute(frame, node.body)
    frame.dead = False
    again = _changes_a_tensor(frame.env, start)
    merge(frame, frame.env, False, start, False)
    if again:
        after = dict(frame.env)
        begin()
        execute(frame, node.body)
        frame.dead = False
        merge(frame, frame.env, False, after, False)
    timing.settle(frame, node)


def _around_loop(
    frame: Frame, node: ast.For | ast.AsyncFor | ast.While, loader: bool, around: Heat | None
) -> Heat | None:
    """What a loop, over a loader or not, says of how hot it is inside, with what is said around it."""
    function = frame.function
    said = loops.of_loop(node, function.name if function is not None else "", frame.module.source)
    over = loader_of(frame, node.iter) if loader and not isinstance(node, ast.While) else ""
    held_out = conventions.of_evaluation(over) and not loops.runs_backward(node, frame.module.source)
    if said is not None and not held_out:
        return loops.within(around, said, node)
    if not loader or isinstance(node, ast.While):
        return loops.inside(around)
    if held_out:
        return around if around is not None and not around.hot else Reason.OVER_HELD_OUT(over)
    if around is not None and not around.hot and around.reason is not Reason.EPOCHS:
        return loops.inside(around)
    own = judge.by_itself(function)
    trains = own.hot and judge.of_function(function).reason is not Reason.FOR_OTHERS
    return Reason.LOADER() if trains or function is None or own.reason is Reason.OUTSIDE else around


def _has_no_tensor(frame: Frame) -> bool:
    """Whether no name is known to hold a tensor, or a network."""
    return not any(fact.kind in (TENSOR, MODULE) for fact in frame.env.values())


def _changes_a_tensor(env: Env, start: Env) -> bool:
    """Whether a name that a loop began with is a tensor after it, and another one."""
    return any(env[name].kind is TENSOR and start[name] != env[name] for name in unlike(env, start) if name in start)


def iterated(frame: Frame, node: ast.expr, over: Fact, trained: bool = False) -> tuple[Fact, bool]:
    """What a loop variable gets, and whether it comes from a loader, as what is `trained` on does, whatever it is called."""
    ref = over.ref
    if ref == LOADER:
        where = DEVICE if over.device is DEVICE else HOST
        return Fact(BATCH, device=where, confidence=2, why="a batch of a DataLoader"), True
    if over.kind is BATCH:
        return element(over), False
    if isinstance(ref, Instance) and (own := find_method(ref.cls, "__iter__")) is not None:
        over = call_function(own, frame, [], {}, over)
    named = over.kind is UNKNOWN.kind or isinstance(over.ref, Instance)
    word = loader_of(frame, node) if named or trained else ""
    batch = Fact(BATCH, device=SOMEWHERE, confidence=1, why=f"a batch of `{word}`")
    counted = isinstance(node, ast.Call) and name_of(node.func) == "enumerate"
    if named and (conventions.is_loader(word) or trained):
        return (sequence(INTEGER, batch) if counted else batch), True
    each = iterated_over(over)
    if trained and counted and [part.kind for part in each.elements[1:]] == [UNKNOWN.kind]:
        return sequence(INTEGER, batch), True
    loader = each.kind is BATCH or any(e.kind is BATCH for e in each.elements)
    return each, loader


def with_block(frame: Frame, node: ast.With | ast.AsyncWith) -> None:
    """`with`."""
    before = frame.around
    for item in node.items:
        fact = evaluate(frame, item.context_expr)
        if item.optional_vars is not None:
            bar = name_of(getattr(item.context_expr, "func", None)) in conventions.BARS
            bind(frame, item.optional_vars, fact if bar or isinstance(fact.ref, Instance) else UNKNOWN)
    if without_gradients(node):
        name = frame.function.name if frame.function is not None else ""
        frame.around = Later(lambda: loops.of_with(node, name, heat_of(before)) or heat_of(before))
    execute(frame, node.body)
    frame.around = before


def try_block(frame: Frame, node: ast.Try) -> None:
    """`try`: a handler starts from where the block started."""
    start = dict(frame.env)
    before = frame.around
    frame.around = arms.of_probe(node.body) or before
    execute(frame, node.body)
    frame.around = before
    if not frame.dead and node.orelse:
        execute(frame, node.orelse)
    end, dead, heat_around = frame.env, frame.dead, frame.around
    for handler in node.handlers:
        frame.env, frame.dead, frame.around = dict(start), False, arms.of_handler(node, handler) or before
        execute(frame, handler.body)
        merge(frame, end, dead, frame.env, frame.dead)
        end, dead = frame.env, frame.dead
    frame.env, frame.dead, frame.around = end, dead, heat_around
    if node.finalbody:
        execute(frame, node.finalbody)
        frame.dead = frame.dead or dead


def asserted(frame: Frame, node: ast.Assert) -> None:
    """`assert`: its message costs nothing until it fails."""
    condition(frame, node.test)
    when, _ = learnt(frame, node.test)
    frame.env.update(when)
    if node.msg is not None and frame.seen is not None:
        waits, frame.waits = frame.waits, None
        evaluate(frame, node.msg)
        frame.waits = waits


def define(frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """A function: run at the end of the block it stands in, or when it is called."""
    if frame.function is None and frame.outer is None and frame.module.bound.get(node.name, _UNBOUND)[0] is node:
        fact = lookup(frame.module, node.name)
        function = fact.ref
    else:
        function = ProjectFunction(node, frame.module, None, frame)
        fact = Fact(OTHER, confidence=3, ref=function)
    for decorator in node.decorator_list:
        evaluate(frame, decorator)
    frame.env[node.name] = fact
    if isinstance(function, ProjectFunction):
        frame.nested.append(function)


def define_class(frame: Frame, node: ast.ClassDef) -> None:
    """A class: its body now, its methods like functions."""
    if frame.function is None and frame.module.bound.get(node.name, _UNBOUND)[0] is node:
        fact = lookup(frame.module, node.name)
    else:
        fact = Fact(OTHER, confidence=3, ref=Class(node, frame.module))
    frame.env[node.name] = fact
    if isinstance(fact.ref, Class):
        outer, frame.env = frame.env, dict(frame.env)
        for statement in node.body:
            if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                frame.interpreter.statements[statement.__class__](frame, statement)
        frame.env = outer
        frame.dead = False
        frame.nested.extend(fact.ref.methods.values())
        seen = {method.node for method in fact.ref.methods.values()}
        for statement in node.body:  # a property's setter has the same name
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) and statement not in seen:
                frame.nested.append(ProjectFunction(statement, frame.module, fact.ref))


def inner_import(frame: Frame, node: ast.Import | ast.ImportFrom) -> None:
    """An import inside a function."""
    if frame.function is None:
        return
    for alias in node.names:
        name = alias.asname or (alias.name if isinstance(node, ast.ImportFrom) else alias.name.partition(".")[0])
        frame.env[name] = imported(frame.module, node, name)


def matched(frame: Frame, node: ast.Match) -> None:
    """`match`: every case from the same start."""
    fact = evaluate(frame, node.subject)
    start = frame.env
    end: Env | None = None
    dead = True
    for case in node.cases:
        frame.env, frame.dead = dict(start), False
        test = patterns.asked(node.subject, case.pattern)
        when, otherwise = learnt(frame, test) if test is not None else NOTHING
        frame.env.update(when)
        patterns.bind_names(frame, case.pattern, when.get(dotted(node.subject), fact))
        if case.guard is not None:
            condition(frame, case.guard)
            frame.env.update(learnt(frame, case.guard)[0])
        execute(frame, case.body)
        if case.guard is None and not patterns.asks_more(case.pattern):
            start = {**start, **otherwise}
        if end is None:
            end, dead = frame.env, frame.dead
        else:
            merge(frame, end, dead, frame.env, frame.dead)
            end, dead = frame.env, frame.dead
    merge(frame, end if end is not None else start, dead, dict(start), False)


def deleted(frame: Frame, node: ast.Delete) -> None:
    """`del name`."""
    for target in node.targets:
        if isinstance(target, ast.Name):
            frame.env.pop(target.id, None)


def nothing(frame: Frame, node: ast.stmt) -> None:
    """pass, global, nonlocal, type: no value changes hands."""


STATEMENTS: dict[type, Callable[[Frame, Any], None]] = {
    ast.Assign: assign,
    ast.AnnAssign: ann_assign,
    ast.AugAssign: aug_assign,
    ast.Return: returned,
    ast.Expr: expression,
    ast.Raise: raised,
    ast.Break: stopped,
    ast.Continue: stopped,
    ast.If: branch,
    ast.While: loop_while,
    ast.For: loop_for,
    ast.AsyncFor: loop_for,
    ast.With: with_block,
    ast.AsyncWith: with_block,
    ast.Try: try_block,
    ast.Assert: asserted,
    ast.FunctionDef: define,
    ast.AsyncFunctionDef: define,
    ast.ClassDef: define_class,
    ast.Import: inner_import,
    ast.ImportFrom: inner_import,
    ast.Match: matched,
    ast.Delete: deleted,
    ast.Pass: nothing,
    ast.Global: nothing,
    ast.Nonlocal: nothing,
}
for _name in ("TryStar", "TypeAlias"):
    if hasattr(ast, _name):
        STATEMENTS[getattr(ast, _name)] = try_block if _name == "TryStar" else nothing
