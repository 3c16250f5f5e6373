"""Branches: both ways of an `if`, each with what its test teaches, and how two ends of a branch are joined."""

from __future__ import annotations

import ast
from functools import partial
from itertools import compress
from operator import is_not

from syncscope.heat import arms, blocks, first_time
from syncscope.heat.fleeting import forgets, is_fleeting
from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.heat import Heat, Reason
from syncscope.tensors.conditions import condition
from syncscope.tensors.facts import (
    FLOATING,
    INTEGER,
    NUMBER,
    SCALAR,
    TENSOR,
    TRUTH,
    Tag,
)
from syncscope.tensors.frame import Frame, Later, execute, heat_of
from syncscope.tensors.guards import named, of_else, of_rest, of_test
from syncscope.tensors.joins import join
from syncscope.tensors.narrowing import Env, constant, learnt
from syncscope.tensors.rare_arms import rare_arms


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
    for name in unlike(left, right):
        other = right.get(name)
        if other is not None:
            left[name] = join(left[name], other)
    if not right.keys() <= left.keys():
        left.update((name, fact) for name, fact in right.items() if name not in left)
    frame.env = left


def unlike(one: Env, other: Env) -> list[str]:
    """The names that stand for something else at another end, or only at this one: few of all, and found without a look at
    each of the others."""
    return [*compress(one, map(is_not, one.values(), map(other.get, one)))]


def branch(frame: Frame, node: ast.If) -> None:
    """`if`: both ways, each with what the test teaches, joined at the end."""
    test = node.test
    said = condition(frame, test)
    if test.__class__ is ast.Compare and _main_guard(test):
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
    asked = named(frame, test)
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
        frame.around = Later(lambda: of_else(frame, node) or _of_missing(frame, node) or heat_of(before))
        execute(frame, node.orelse)
        frame.around = before
        frame.guarded = guarded
    if left_dead and not node.orelse:
        frame.around = Later(lambda: _of_rest(frame, asked, heat_of(before)))
    if not (left_dead or frame.dead):
        if when or otherwise:
            _forget((when, otherwise), start, left, frame.env)
        if node.orelse:
            _doubt(start, left, frame.env)
    merge(frame, left, left_dead, frame.env, frame.dead)


def _forget(told: tuple[Env, Env], start: Env, left: Env, right: Env) -> None:
    """What both arms keep as the test told them is, behind them, what it was before the test."""
    when, otherwise = told
    for name in {**when, **otherwise}:
        before = start.get(name)
        kept = left.get(name) is when.get(name, before) and right.get(name) is otherwise.get(name, before)
        if kept and before is not None:
            left[name] = right[name] = before


def _calculated(fact: Fact) -> bool:
    """Whether a number is not written out."""
    if fact is NUMBER or fact.ref is Tag.PROVED:
        return True
    return fact is not INTEGER and fact is not FLOATING and fact is not TRUTH and fact.ref is None


def _doubt(start: Env, left: Env, right: Env) -> None:
    """Of a name that one arm gives a tensor and the other a number that was calculated, the number is as likely."""
    for name in unlike(left, right):
        for one, other in ((left, right), (right, left)):
            fact, number, before = one.get(name, UNKNOWN), other.get(name, UNKNOWN), start.get(name)
            is_new = fact is not before and number is not before
            if is_new and fact.kind is TENSOR and fact.confidence > 1 and number.kind is SCALAR and _calculated(number):
                one[name] = fact.but(confidence=1)


def _of_body(frame: Frame, node: ast.If, asked: ast.expr, said: Fact) -> Heat | None:
    """What the arm of an `if` says that is gone into where its test holds."""
    return (
        of_test(frame, asked)
        or arms.of_arm(node.body)
        or first_time.of_first(node, partial(_forgotten, frame), partial(_fleeting, frame, node))
        or arms.of_nothing(node)
        or arms.of_clock(node)
        or arms.of_warning(node.body)
        or _of_last(frame, node)
        or (arms.of_notice(node.body) if said.kind is TENSOR else None)
    )


def _of_missing(frame: Frame, node: ast.If) -> Heat | None:
    scope = frame.module.tree if frame.function is None else frame.function.node
    return first_time.of_missing(node, scope, partial(_forgotten, frame), partial(_fleeting, frame, node))


def _forgotten(frame: Frame, kept: str) -> bool:
    return frame.function is not None and forgets(frame.function.node, kept, frame.module.source)


def _fleeting(frame: Frame, node: ast.If, name: str) -> bool:
    scope = frame.module.tree if frame.function is None else frame.function.node
    return is_fleeting(scope, node, frame.module.source, name)


def _of_last(frame: Frame, node: ast.If) -> Heat | None:
    function, module = frame.function, frame.module
    scope = module.tree if function is None else function.node
    return blocks.of_last(scope, node, function.name if function is not None else "", module.source)


def _of_rest(frame: Frame, asked: ast.expr, before: Heat | None) -> Heat | None:
    """What is said of what stands behind an `if` that ends its block, and was said so before it."""
    return (of_rest(frame, asked) or before) if before is None or before.hot else before


def _main_guard(test: ast.Compare) -> bool:
    return isinstance(test.left, ast.Name) and test.left.id == "__name__"
