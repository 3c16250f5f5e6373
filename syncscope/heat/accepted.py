"""Waits in hot code that are meant, that nothing would help, or that have just been waited for."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from syncscope.heat.timed import before_clock
from syncscope.model.fact import Emitted, Fact, Value
from syncscope.model.heat import CLOCKED, Heat, Reason, Role
from syncscope.model.ops import ASKED, COPIES, Family, Op
from syncscope.model.source import line_starts
from syncscope.project import conventions, environments
from syncscope.project.modules import Module, ProjectFunction
from syncscope.project.of_file import kept
from syncscope.project.syntax import children, last_word, name_of, parents, walk

_MEDIUM = 2  # the least confidence that is told
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_UPLOADS = frozenset((Op.TO_DEVICE, Op.CREATED_ON_HOST, Op.TENSOR_LITERAL))
_POSITIONS = frozenset((Op.NONZERO, Op.ARGWHERE, Op.WHERE))
_NO_OTHER_FORM = frozenset("svd svdvals eig eigh eigvals eigvalsh matrix_rank cond".split())


class Waiting(NamedTuple):
    """A wait in a function that runs in every step, and why that is known."""

    wait: Emitted
    function: ProjectFunction
    heat: Heat


def accepted(wait: Emitted, function: ProjectFunction | None, heat: Heat, module: Module) -> Heat | None:
    """The first reason of the table that holds: the host needs the value and nothing would help, or nobody would gain."""
    if wait.op is Op.GRAD_SCALER:
        return Reason.BY_DESIGN()
    if wait.op is Op.TIMING and heat.reason in CLOCKED:
        return Reason.CLOCK()
    if before_clock(wait, module.tree if function is None else function.node):
        return Reason.TIMED()
    if function is None:  # a script's own lines
        if _after_environment(wait, module.tree, module.source):
            return Reason.ENVIRONMENT()
        return Reason.ACTION() if _is_action(wait, module.tree, module.source) else None
    case = Waiting(wait, function, heat)
    for reason, holds in JUDGES:
        about = holds(case)
        if about and reason is Reason.ASKED:
            return reason(of=heat)
        if about:
            return reason(about) if isinstance(about, str) else reason()
    return None


def _asked_after_another(case: Waiting) -> bool:
    """Whether a test is what is asked next where another test of values said no: `a.any() or b.any()`, `elif b > 1`."""
    node, function = case.wait.node, case.function
    if case.wait.op is not Op.CONDITION:
        return False

    def waits(test: ast.expr) -> bool:
        return any(_waits(each, function, Op.CONDITION) for each in walk(test))

    inner = node
    for outer in _above(function.node, node):
        if isinstance(outer, ast.BoolOp):
            before = outer.values[: next((i for i, each in enumerate(outer.values) if each is inner), 0)]
            if any(map(waits, before)):
                return True
        elif isinstance(inner, ast.If):
            return isinstance(outer, ast.If) and outer.orelse == [inner] and waits(outer.test)
        elif isinstance(outer, ast.stmt) and not isinstance(outer, ast.If):
            return False
        inner = outer
    return False


def _waits(node: ast.AST, function: ProjectFunction, *ops: Op) -> bool:
    """Whether this waits, and is told: what is too unsure for that says nothing of another."""
    found = (function.sites.get((id(node), op)) for op in ops)
    return any(wait is not None and wait.confidence >= _MEDIUM for wait in found)


@kept(64)
def _generates(function: ProjectFunction) -> bool:
    """Whether it asks a model for whole sequences whenever it runs, one pass through the model for each of their tokens."""
    if b"generate" not in _text(function):
        return False
    todo: list[ast.AST] = list(function.node.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Call) and conventions.GENERATION.search(name_of(node.func)):
            return True
        if not isinstance(node, (ast.If, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            todo += children(node)
    return False


@kept(8)  # each holds all of its file
def _text(function: ProjectFunction) -> bytes:
    """A function as it is written."""
    source, starts, last = function.module.source, line_starts(function.module.source), function.node.end_lineno or 0
    return source[starts[function.node.lineno - 1] : starts[last] if last < len(starts) else len(source)]


_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)


def _above(root: ast.AST, node: ast.AST) -> list[ast.AST]:
    """What a node stands in, from the inside out, up to and with a function."""
    around, found = parents(root), []
    above = around.get(node)
    while above is not None:
        found.append(above)
        above = around.get(above)
    return found


_AT_ONCE = (
    *_SIMPLE,
    ast.Call,
    ast.keyword,
    ast.Dict,
    ast.Tuple,
    ast.List,
    ast.BinOp,
    ast.JoinedStr,
    ast.FormattedValue,
)


def _just_waited(wait: Emitted, function: ProjectFunction, statement: ast.stmt) -> bool:
    """Whether what is read was there when another read of the same statement began, and nothing was asked for since."""
    if not _is_there(wait.node):
        return False
    begin = wait.node.lineno, wait.node.col_offset  # type: ignore[attr-defined]
    calls = _calls(statement)
    at = bisect_right(calls, begin, key=_end)
    last = calls[at - 1] if at else None
    if last is None or not _is_there(last) or not _waits(last, function, *_NUMBERS):
        return False
    return all(isinstance(each, _AT_ONCE) for each in _above(statement, last))


@kept(32)  # asked for each wait of a statement
def _calls(statement: ast.stmt) -> list[ast.Call]:
    """The calls in a statement, by where they end."""
    return sorted((n for n in walk(statement) if isinstance(n, ast.Call)), key=_end)


def _end(node: ast.Call) -> tuple[int | None, int | None]:
    return node.end_lineno, node.end_col_offset


_NUMBERS = (Op.ITEM, Op.FLOAT, Op.INT, Op.TOLIST)


def _is_there(node: Any) -> bool:
    """Whether this reads what has a name, and asks for no more: `loss.item()`, `float(loss.detach())`."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="item" | "tolist"), args=[]):
            pass
        case ast.Call(func=ast.Name(id="float" | "int"), args=[value]):
            pass
        case _:
            return False
    match value:
        case ast.Call(func=ast.Attribute(value=value, attr="detach"), args=[]):
            pass
    return isinstance(value, (ast.Name, ast.Attribute))


def _reads(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("item", "tolist", "cpu")
    )


def _owner(node: ast.expr | None) -> ast.expr | None:
    """The value under `.detach()`, `.float()` and the like."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        node = node.func.value
    return node


def _loops_around(node: ast.AST, function: ProjectFunction) -> bool:
    return any(isinstance(each, _LOOPS) for each in _above(function.node, node))


def _of_a_batch(fact: Fact) -> bool:
    """Whether it is part of what a loader gave."""
    while fact.source is not None:
        fact = fact.source
    return fact.kind is Value.BATCH


def _may_be_pinned(function: ProjectFunction) -> bool:
    """Whether the loader is in sight, so that it can be told to pin its memory, or the project pins any."""
    module = function.module
    return b"DataLoader(" in module.source or module.project.role(module.path, "pin_memory") is Role.STEP


def _positions_are_kept(node: Any, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether what was looked for, in no loop, gets a name, and more is done with it than to count or to write there."""
    above = _above(function, node)
    if any(isinstance(each, _LOOPS) for each in above):
        return False
    for inner, each in zip([node, *above], above, strict=False):
        if inner in _counted_or_written(each):  # `nonzero(m).size(0)`: how many there are is all that is kept
            return False
        if isinstance(each, ast.Subscript) and isinstance(each.slice, ast.Slice) and each.slice.upper is not None:
            return False  # `nonzero(m)[:k]`: of a number that the host knows there is a form that does not wait
        if isinstance(each, ast.Assign) and inner is each.value:
            names = {name_of(name) for target in each.targets for name in walk(target) if isinstance(name, ast.Name)}
            return not names.isdisjoint(_used(function))
    return False


@kept(32)
def _used(function: ast.AST) -> frozenset[str]:
    """Names that are read for more than to count or to write there."""
    every = walk(function)
    only = {id(part) for each in every for part in _counted_or_written(each)}
    loaded = (each for each in every if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load))
    return frozenset(each.id for each in loaded if id(each) not in only)


def _counted_or_written(node: ast.AST) -> Iterator[ast.AST]:
    """What is asked for its size here, or is where something is written."""
    if isinstance(node, ast.Attribute) and node.attr in ("numel", "size", "shape", "nelement"):
        yield node.value
    elif isinstance(node, ast.Call) and name_of(node.func) == "len":
        yield from node.args
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        yield node.slice


def _of_a_pageable_batch(case: Waiting) -> bool:
    return case.wait.op is Op.TO_DEVICE and _of_a_batch(case.wait.fact) and not _may_be_pinned(case.function)


def _prepared(case: Waiting) -> bool:
    """Whether this is what a tokenizer or the like has just given."""
    operand = case.wait.operand
    if case.wait.op is not Op.TO_DEVICE or not isinstance(operand, ast.Call):
        return False
    return conventions.PREPARERS.search(name_of(operand.func)) is not None


def _of_an_environment(case: Waiting) -> bool:
    """Whether this uploads what an environment on the host has given."""
    text = _text(case.function)
    if case.wait.op in _UPLOADS and case.function.name in ("step", "reset"):
        return environments.asks_environment(text)
    return _after_environment(case.wait, case.function.node, text)


def _after_environment(wait: Emitted, root: ast.AST, text: bytes) -> bool:
    """Whether this uploads what an environment gave in the same block, in the names that it was given there."""
    if wait.op not in _UPLOADS or not environments.asks_environment(text):
        return False
    above = _above(root, wait.node)
    statement = _statement(above)
    if statement is None:
        return False
    around = above[above.index(statement) + 1] if above.index(statement) + 1 < len(above) else root
    block = next((b for b in (getattr(around, "body", []), getattr(around, "orelse", [])) if statement in b), [])
    given: set[str] = set()
    for before in block[: block.index(statement)] if statement in block else []:
        steps = any(
            isinstance(n, ast.Call) and environments.asks_environment(f"{ast.unparse(n.func)}(".encode())
            for n in walk(before)
        )
        names = {n.id for n in walk(before) if isinstance(n, ast.Name)}
        if steps or names & given:
            given |= {n.id for n in walk(before) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    used = {n.id for n in walk(wait.node) if isinstance(n, ast.Name)}
    return not used.isdisjoint(given)


def _has_no_other_form(case: Waiting) -> bool:
    called = name_of(getattr(case.wait.node, "func", None))
    return (
        case.wait.op is Op.LINALG_CHECK
        and called in _NO_OTHER_FORM
        and not _loops_around(case.wait.node, case.function)
    )


def _for_a_score(case: Waiting) -> str:
    """The score that a number is read for, which runs on the host."""
    calls = (each for each in _around_read(case) if isinstance(each, ast.Call))
    return next((name_of(each.func) for each in calls if conventions.SCORES.search(name_of(each.func))), "")


def _beside_a_copy(case: Waiting) -> bool:
    statement = _statement(_around_read(case))
    if not isinstance(statement, _SIMPLE):
        return False
    begin = case.wait.node.lineno, case.wait.node.col_offset  # type: ignore[attr-defined]
    copies = (n for n in _calls(statement) if _waits(n, case.function, Op.CPU))
    first = next(copies, None)  # `x.detach().cpu()`: another tensor than the one that is read
    return first is not None and _end(first) <= begin


def _after_a_read(case: Waiting) -> bool:
    statement = _statement(_around_read(case))
    return statement is not None and _just_waited(case.wait, case.function, statement)


def _the_one_number(case: Waiting) -> bool:
    """Whether a loss is noted in what the function gives, which reads nothing else."""
    above = _around_read(case)
    statement = _statement(above)
    if not isinstance(statement, ast.Return) or not conventions.is_loss(last_word(_owner(case.wait.operand))):
        return False
    noted = isinstance(above[0], (ast.keyword, ast.Dict))
    whole = all(isinstance(each, (ast.keyword, ast.Dict, ast.Call)) for each in above[: above.index(statement)])
    return noted and whole and sum(map(_reads, walk(case.function.node))) == 1


def _around_read(case: Waiting) -> list[ast.AST]:
    """What a number that is read stands in, from the inside out; nothing where another kind of wait is meant."""
    return _above(case.function.node, case.wait.node) if case.wait.op.family is Family.READ else []


def _statement(above: list[ast.AST]) -> ast.stmt | None:
    return next((each for each in above if isinstance(each, ast.stmt)), None)


def _for_the_host(case: Waiting) -> bool:
    return case.wait.op in COPIES and case.function.cls is not None and case.function.cls.name.endswith("Buffer")


def _for_a_solver(case: Waiting) -> bool:
    return case.wait.op in COPIES and conventions.SOLVERS.search(_text(case.function)) is not None


def _of_its_own_distribution(case: Waiting) -> bool:
    """Whether a distribution of the project checks, as torch's own do: whoever makes one says whether it does."""
    called = name_of(getattr(case.wait.node, "func", None))
    return case.wait.op is Op.DISTRIBUTION_VALIDATE and called in ("__init__", "_validate_sample")


def _an_action(case: Waiting) -> bool:
    """Whether this is what an environment is told to do."""
    return _is_action(case.wait, case.function.node, _text(case.function))


def _is_action(wait: Emitted, root: ast.AST, text: bytes) -> bool:
    """Whether a copy is what an environment in the same code is told to do: by its name, or by where it goes."""
    if wait.op not in COPIES or not environments.asks_environment(text):
        return False
    if environments.is_action(last_word(_owner(wait.operand))):
        return True
    for outer in _above(root, wait.node):
        if isinstance(outer, ast.Call) and environments.asks_environment(f"{ast.unparse(outer.func)}(".encode()):
            return True
        if isinstance(outer, ast.stmt):
            targets = outer.targets if isinstance(outer, ast.Assign) else []
            if len(targets) != 1 or not isinstance(targets[0], ast.Name):
                return False
            return environments.is_action(targets[0].id) or _told_to_environment(targets[0].id, root)
    return False


def _told_to_environment(name: str, root: ast.AST) -> bool:
    """Whether an environment is given what is called so as what it is to do: `env.step(act)`."""
    return any(
        isinstance(call, ast.Call)
        and environments.asks_environment(f"{ast.unparse(call.func)}(".encode())
        and any(name_of(each) == name for each in call.args)
        for call in walk(root)
    )


JUDGES: tuple[tuple[Reason, Callable[[Waiting], bool | str]], ...] = (
    (Reason.ASKED_AFTER, _asked_after_another),
    (Reason.POSITIONS, lambda c: c.wait.op in _POSITIONS and _positions_are_kept(c.wait.node, c.function.node)),
    (Reason.ASKED, lambda c: c.wait.op in ASKED and c.heat.reason in (Reason.MAYBE, Reason.CALLED)),
    (Reason.NO_FORM, _has_no_other_form),
    (Reason.BATCH, _of_a_pageable_batch),
    (Reason.PREPARED, _prepared),
    (Reason.ENVIRONMENT, _of_an_environment),
    (Reason.GENERATION, lambda c: _generates(c.function)),
    (Reason.SCORE, _for_a_score),
    (Reason.COPIED, _beside_a_copy),
    (Reason.SAME_STATEMENT, _after_a_read),
    (Reason.ONE_NUMBER, _the_one_number),
    (Reason.BUFFER, _for_the_host),
    (Reason.SOLVER, _for_a_solver),
    (Reason.ACTION, _an_action),
    (Reason.CHECKED, _of_its_own_distribution),
)
"""In the order in which they are asked. A text that one gives is what the reason is about."""
