"""Statements: bindings, branches that join, loops, and what a test teaches about the names in it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import Any

from syncscope.heat import arms, judge, loops
from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.heat import Heat, Reason
from syncscope.project import conventions
from syncscope.project.modules import Class, ProjectFunction
from syncscope.project.names import imported, lookup, named
from syncscope.project.syntax import name_of, walk
from syncscope.tensors import timing
from syncscope.tensors.bindings import ann_assign, assign, aug_assign, bind
from syncscope.tensors.conditions import condition
from syncscope.tensors.facts import (
    BATCH,
    HOST,
    INTEGER,
    LOADER,
    NONE,
    NUMBER,
    OTHER,
    SOMEWHERE,
    TENSOR,
    element,
    iterated_over,
    join,
    sequence,
)
from syncscope.tensors.frame import Frame, Later, evaluate, execute, heat_of
from syncscope.tensors.instances import Instance
from syncscope.tensors.narrowing import Env, constant, learnt, rare_arms


def returned(frame: Frame, node: ast.Return) -> None:
    """`return value`."""
    frame.returns.append(evaluate(frame, node.value) if node.value is not None else NONE)
    frame.dead = True


def expression(frame: Frame, node: ast.Expr) -> None:
    """An expression for its effect."""
    value = node.value
    if value.__class__ is not ast.Constant:
        fact = frame.table[value.__class__](frame, value)
        if value.__class__ in (ast.Yield, ast.YieldFrom):
            frame.returns.append(fact)


def raised(frame: Frame, node: ast.Raise) -> None:
    """`raise`: what an error message reads costs nothing until it is raised."""
    before, frame.around = frame.around, Reason.RAISES()
    waits, frame.waits = frame.waits, None  # what an error message reads costs nothing until it is raised
    if node.exc is not None:
        evaluate(frame, node.exc)
    frame.around, frame.waits = before, waits
    frame.dead = True


def stopped(frame: Frame, node: ast.stmt) -> None:
    """`break`, `continue`: the rest of the block is not reached."""
    frame.dead = True


def merge(frame: Frame, left: Env, left_dead: bool, right: Env, right_dead: bool) -> None:
    """Join two ends of a branch; an end that is not reached does not count."""
    if left_dead:
        frame.env = right
        frame.dead = right_dead
        return
    frame.dead = False
    if right_dead:
        frame.env = left
        return
    if len(left) < len(right):
        left, right = right, left
    for name, fact in left.items():
        other = right.get(name)
        if other is not fact:
            left[name] = join(fact, other) if other is not None else fact
    if len(right) > 0:
        for name, fact in right.items():
            if name not in left:
                left[name] = fact
    frame.env = left


def branch(frame: Frame, node: ast.If) -> None:
    """`if`: both ways, each with what the test teaches, joined at the end."""
    test = node.test
    said = condition(frame, test)
    if _main_guard(test):
        before, frame.around = frame.around, Reason.MAIN()
        execute(frame, node.body)
        frame.around = before
        frame.dead = False
        return
    when, otherwise = learnt(frame, test)
    truth = constant(frame, test)
    start = frame.env
    left = dict(start)
    left.update(when)
    frame.env = left
    before = frame.around
    guarded = frame.guarded
    rare_body, rare_else = rare_arms(frame, test)
    frame.guarded = guarded or rare_body
    asked = _asked(frame, test)
    if frame.waits is not None:
        frame.around = Later(lambda: _of_body(frame, node, asked, said) or heat_of(before))
    if truth is not False:
        execute(frame, node.body)
    else:
        frame.dead = True
    frame.around = before
    frame.guarded = guarded
    left, left_dead = frame.env, frame.dead
    frame.dead = False
    right = dict(start)
    right.update(otherwise)
    frame.env = right
    if truth is True:
        frame.dead = True
    elif node.orelse:
        frame.guarded = guarded or rare_else
        frame.around = Later(lambda: arms.of_else(node) or heat_of(before))
        execute(frame, node.orelse)
        frame.around = before
        frame.guarded = guarded
    if left_dead and not node.orelse:
        frame.around = Later(lambda: _of_rest(asked, heat_of(before)))
    if node.orelse and not (left_dead or frame.dead):
        _doubt(start, left, frame.env)
    merge(frame, left, left_dead, frame.env, frame.dead)


def _doubt(start: Env, left: Env, right: Env) -> None:
    """Of a name that one arm gives a tensor and the other a number that was calculated, the number is as likely."""
    for one, other in ((left, right), (right, left)):
        for name, fact in one.items():
            if fact.kind is TENSOR and fact.confidence > 1 and start.get(name) is not fact:
                number = other.get(name, UNKNOWN)
                if number is NUMBER and start.get(name) is not number:
                    one[name] = fact.but(confidence=1)


def _of_body(frame: Frame, node: ast.If, asked: ast.expr, said: Fact) -> Heat | None:
    """What the arm of an `if` says that is gone into where its test holds."""
    return (
        arms.of_test(asked, partial(_number, frame))
        or arms.of_arm(node.body)
        or arms.of_first(node)
        or arms.of_nothing(node)
        or arms.of_warning(node.body)
        or (arms.of_notice(node.body) if said.kind is TENSOR else None)
    )


def _of_rest(asked: ast.expr, before: Heat | None) -> Heat | None:
    """What is said of what stands behind an `if` that ends its block, and was said so before it."""
    return (arms.of_rest(asked) or before) if before is None or before.hot else before


def _asked(frame: Frame, test: ast.expr) -> ast.expr:
    """What a test asks, also where it was asked before and has a name: `every = step % 50 == 0`."""
    if not isinstance(test, ast.Name):
        return test
    fact = frame.env.get(test.id)
    return fact.ref if fact is not None and isinstance(fact.ref, (ast.Compare, ast.BoolOp)) else test


def _number(frame: Frame, node: ast.expr) -> int | None:
    """A whole number that stands here, or that its name is given once, in the function or at the top level of the file."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, int) else None
    if not isinstance(node, ast.Name):
        return None
    function = frame.function.node if frame.function is not None else None
    for scope in (function, frame.module.tree):
        given = [each for each in walk(scope) if _binds(each, node.id)] if scope is not None else []
        if given:
            value = given[0].value if len(given) == 1 and isinstance(given[0], ast.Assign) else None
            return _number(frame, value) if isinstance(value, ast.Constant) else None
    return None


def _binds(node: ast.AST, name: str) -> bool:
    """Whether this may give a name its value."""
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.NamedExpr)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(isinstance(each, ast.Name) and each.id == name for target in targets for each in walk(target))
    return isinstance(node, ast.arg) and node.arg == name


def _main_guard(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def loop_while(frame: Frame, node: ast.While) -> None:
    """`while`: the body once, and again when it changed a tensor that it starts from."""
    start = dict(frame.env)
    before = frame.around
    said = loops.of_loop(node, frame.function.name if frame.function is not None else "", frame.module.source)
    frame.around = before if said is None else loops.within(heat_of(before), said, node)
    condition(frame, node.test)
    when, otherwise = learnt(frame, node.test)
    frame.env.update(when)
    execute(frame, node.body)
    frame.dead = False
    again = any(
        start.get(name, UNKNOWN) != fact and fact.kind is TENSOR for name, fact in frame.env.items() if name in start
    )
    merge(frame, frame.env, False, start, False)
    if again:
        after = dict(frame.env)
        condition(frame, node.test)
        execute(frame, node.body)
        frame.dead = False
        merge(frame, frame.env, False, after, False)
    timing.settle(frame, node)
    frame.env.update(otherwise)
    frame.around = before
    if node.orelse:
        execute(frame, node.orelse)
    endless = isinstance(node.test, ast.Constant) and node.test.value
    frame.dead = bool(endless) and not any(isinstance(each, ast.Break) for each in ast.walk(node))


def loop_for(frame: Frame, node: ast.For | ast.AsyncFor) -> None:
    """`for`: like `while`; a loop over a loader is hot."""
    over = evaluate(frame, node.iter)
    each, loader = iterated(frame, node.iter, over)
    start = dict(frame.env)
    before = frame.around
    said = loops.of_loop(node, frame.function.name if frame.function is not None else "", frame.module.source)
    if said is not None:
        frame.around = loops.within(heat_of(before), said, node)
    elif loader and ((heat := heat_of(before)) is None or heat.hot or heat.reason is Reason.EPOCHS):
        own = judge.by_itself(frame.function)
        if own.hot or frame.function is None or own.reason is Reason.OUTSIDE:
            frame.around = Reason.LOADER()
    bind(frame, node.target, each)
    execute(frame, node.body)
    frame.dead = False
    again = any(start[name] != fact and fact.kind is TENSOR for name, fact in frame.env.items() if name in start)
    merge(frame, frame.env, False, start, False)
    if again:
        after = dict(frame.env)
        bind(frame, node.target, each)
        execute(frame, node.body)
        frame.dead = False
        merge(frame, frame.env, False, after, False)
    timing.settle(frame, node)
    frame.around = before
    if node.orelse:
        execute(frame, node.orelse)
    frame.dead = False


def iterated(frame: Frame, node: ast.expr, over: Fact) -> tuple[Fact, bool]:
    """What a loop variable gets, and whether it comes from a loader."""
    ref = over.ref
    if ref == LOADER:
        return Fact(BATCH, device=HOST, confidence=2, why="a batch of a DataLoader"), True
    inner = node
    while isinstance(inner, ast.Call) and inner.args:
        inner = inner.args[0]
    word = name_of(inner)
    if over.kind is BATCH:
        return element(over), False
    if over.kind is UNKNOWN.kind and conventions.is_loader(word):
        batch = Fact(BATCH, device=SOMEWHERE, confidence=1, why=f"a batch of `{word}`")
        if isinstance(node, ast.Call) and name_of(node.func) == "enumerate":
            return sequence(INTEGER, batch), True
        return batch, True
    each = iterated_over(over)
    loader = each.kind is BATCH or any(e.kind is BATCH for e in each.elements)
    return each, loader


def with_block(frame: Frame, node: ast.With | ast.AsyncWith) -> None:
    """`with`."""
    before = frame.around
    for item in node.items:
        fact = evaluate(frame, item.context_expr)
        if item.optional_vars is not None:
            bind(frame, item.optional_vars, fact if isinstance(fact.ref, Instance) else UNKNOWN)
    frame.around = loops.of_with(node, heat_of(before)) or before
    execute(frame, node.body)
    frame.around = before


def try_block(frame: Frame, node: ast.Try) -> None:
    """`try`: a handler starts from where the block started."""
    start = dict(frame.env)
    execute(frame, node.body)
    if not frame.dead and node.orelse:
        execute(frame, node.orelse)
    end, dead, heat_around = frame.env, frame.dead, frame.around
    for handler in node.handlers:
        frame.env, frame.dead, frame.around = dict(start), False, Reason.AFTER_ERROR()
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
    if node.msg is not None:
        waits, frame.waits = frame.waits, None
        evaluate(frame, node.msg)
        frame.waits = waits


def define(frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """A function: run at the end of the block it stands in, or when it is called."""
    if frame.function is None and frame.outer is None and frame.module.symbols.get(node.name) is node:
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
    if frame.function is None and frame.module.symbols.get(node.name) is node:
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
        if isinstance(node, ast.Import):
            frame.env[alias.asname or alias.name.partition(".")[0]] = named(
                alias.name if alias.asname else alias.name.partition(".")[0]
            )
        else:
            name = alias.asname or alias.name
            frame.env[name] = imported(frame.module, node, name)


def matched(frame: Frame, node: ast.Match) -> None:
    """`match`: every case from the same start."""
    evaluate(frame, node.subject)
    start = frame.env
    end: Env | None = None
    dead = True
    for case in node.cases:
        frame.env, frame.dead = dict(start), False
        if case.guard is not None:
            condition(frame, case.guard)
        execute(frame, case.body)
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
