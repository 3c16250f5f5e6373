"""Hot or cold: whether a place runs in every step, and the words that say why."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from syncscope.model.ops import ASKED, COPIES, Op
from syncscope.model.source import LINE_END, line_starts
from syncscope.tensors import conventions
from syncscope.tensors.hotness_by_name import MAYBE, by_name, by_place, known_by_name, picks_rows
from syncscope.tensors.project import Module, ProjectFunction
from syncscope.tensors.syntax import dotted, last_word, name_of, walk

_IN_WORD = re.compile(rb"\w")
_NO_GRAD = {"no_grad", "inference_mode"}
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FARTHEST = 3  # callers of callers that are asked
TRAINING = (True, conventions.LOOP)  # known by the backward pass in it: outranks what the function is called

OUTSIDE = "outside its training loop"  # how the reason ends of what such a function does before and after
LOADER = (True, "in a loop over a loader")
WARNED = (False, "only when it warns")
MOVED = (False, "it is moved once, and kept")


def trains(node: ast.For | ast.AsyncFor | ast.While, function: ProjectFunction | None, source: bytes) -> bool:
    """Whether a loop is a training loop: it holds a backward pass, or stands in a function called so and calls its steps."""
    spoken_of = any(node.lineno <= line <= (node.end_lineno or 0) for line in _backward_lines(source))
    called_so = function is not None and conventions.HOT.get(function.name) is conventions.LOOP
    return (spoken_of or called_so) and any(
        isinstance(each, ast.Call)
        and (
            getattr(each.func, "attr", "") in ("backward", "manual_backward")
            or (called_so and conventions.STEP.search(name_of(each.func)))
        )
        for each in walk(node)
    )


@lru_cache(maxsize=64)
def _holds_its_loop(function: ProjectFunction) -> bool:
    """Whether one of its loops is known to train; else all of it may be what does."""
    return any(
        isinstance(each, _LOOPS) and trains(each, function, function.module.source) for each in walk(function.node)
    )


@lru_cache(maxsize=64)
def _backward_lines(source: bytes) -> tuple[int, ...]:
    """The lines that speak of a backward pass."""
    if b"backward(" not in source:
        return ()
    return tuple(n for n, line in enumerate(LINE_END.split(source), 1) if b"backward" in line)


def of_wait(around: tuple[bool, str] | None, function: ProjectFunction | None, module: Module) -> tuple[bool, str]:
    """Hot or cold by what a wait stands in: the loop or the arm around it, its function, its file."""
    path = Path(module.path)
    if conventions.TEST_FILE.search(path.stem) or path.parent.name in ("test", "tests"):
        return False, "in a file of tests"
    said = of_function(function)
    if around is None or (
        around[0] and around is not TRAINING and function is not None and not (said[0] or said[1].endswith(OUTSIDE))
    ):
        return said
    return around


def of_function(function: ProjectFunction | None) -> tuple[bool, str]:
    """Hot or cold by the function, for what stands outside its loops: by itself, or by who speaks of it."""
    said = by_itself(function)
    if function is None or not said[0]:
        return said
    if said[1].endswith(MAYBE) and not _is_reached(function):
        return False, f"nothing that runs in every step speaks of `{function.name}`"
    return _by_its_callers(function, 0) or said


def _is_reached(function: ProjectFunction) -> bool:
    """Whether a step of the project reaches a function, or the one that it is in; True where that is not known."""
    while (around := getattr(function.closure, "function", None)) is not None:
        function = around
    return function.module.project.reaches(function.module.path, function.name, function.cls is not None)


def _by_its_callers(function: ProjectFunction, depth: int) -> tuple[bool, str] | None:
    """Cold, where only cold functions of its file call a private function, or only cold methods of its own a public method."""
    private = conventions.is_private(function.name)
    if depth > _FARTHEST or not (private or (function.cls is not None and by_itself(function)[1].endswith(MAYBE))):
        return None
    why = ""
    for caller in _callers(function.module, function.name, private):
        if caller is None:
            return None
        if caller is not function:
            hot, why = _by_its_callers(caller, depth + 1) or by_itself(caller)
            if hot or why.endswith(OUTSIDE):
                return None
    return (False, f"`{function.name}` is called {why}") if why else None


@lru_cache(maxsize=64)
def _callers(module: Module, name: str, anyhow: bool) -> list[ProjectFunction | None]:
    """The functions of a file that call this one; None where it is handed on uncalled, named outside of all functions, or, not
    `anyhow`, is no method of the caller's own object.

    Its text says which of them speak of it: no other is gone through.
    """
    found: list[ProjectFunction | None] = []
    starts = line_starts(module.source)
    lines = [bisect_right(starts, at) for at in _stands(name.encode(), module.source)]
    for function in module.top:
        first = min((d.lineno for d in function.node.decorator_list), default=function.node.lineno)
        last = function.node.end_lineno or first
        inside = [line for line in lines if first <= line <= last]
        if inside:
            lines = [line for line in lines if not first <= line <= last]
            found += [function if called else None for called in _uses(function.node, name, anyhow)]
    if lines:
        found += [None for node in walk(module.tree) if name_of(node) == name and node.lineno in lines]  # type: ignore[attr-defined]
    return found


def _stands(word: bytes, text: bytes) -> Iterator[int]:
    """Where a word stands by itself: found as bytes, in a tenth of the time that a pattern would take."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not (_IN_WORD.match(text, at - 1) if at else None) and not _IN_WORD.match(text, end):
            yield at
        at = text.find(word, end)


def _uses(root: ast.AST, name: str, anyhow: bool) -> list[bool]:
    """For each place where a name stands, also as an attribute, whether it is called there, of `self` unless `anyhow`."""
    uses: dict[int, bool] = {}
    for node in walk(root):  # a call comes before what it calls
        if node.__class__ is ast.Call:
            func: Any = node.func
            if name_of(func) == name:
                uses[id(func)] = anyhow or name_of(getattr(func, "value", None)) in ("self", "cls")
        elif name_of(node) == name:
            uses.setdefault(id(node), False)
    return list(uses.values())


def accepted(op: Op, operand: ast.expr | None, function: ProjectFunction | None, why: str) -> tuple[bool, str] | None:
    """Cold, where the host needs the value and nothing would help, or asks for it where no step is in sight."""
    if op is Op.GRAD_SCALER:
        return False, "by design, once a step"
    if op in ASKED and why.endswith(MAYBE):
        return False, "asked for, where nothing says that it runs in every step"
    if op not in COPIES or function is None:
        return None
    if function.cls is not None and function.cls.name.endswith("Buffer"):
        return False, "for a buffer that the host keeps"
    source, starts = function.module.source, line_starts(function.module.source)
    text = source[starts[function.node.lineno - 1] : starts[min(function.node.end_lineno or 0, len(starts) - 1)]]
    if conventions.SOLVERS.search(text):
        return False, "for a solver that runs on the host"
    if conventions.is_action(last_word(operand)) and conventions.ENVIRONMENT.search(text):
        return False, "for an environment that runs on the host"
    return None


def by_itself(function: ProjectFunction | None) -> tuple[bool, str]:
    """Hot or cold by the function alone."""
    if function is None:
        return False, "at the top level of the file, once"
    name = function.name
    node = function.node
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if name_of(target) in _NO_GRAD:
            return False, "under no_grad: not in the training step"
        if name_of(target) in ("cache", "lru_cache", "cached_property"):
            return False, f"`{name}` is cached: it runs once"
        if name_of(target) == "setter":
            return False, f"in the setter of `{name}`: set-up"
    owner, methods = (function.cls.name, function.cls.methods) if function.cls is not None else ("", ())
    said = by_name(name, owner, methods)
    if said[0] and known_by_name(name, methods):
        if conventions.NO_STEPS.intersection(function.module.package[1:]):
            return False, by_place(function.module.package[1:], "", name)
        return (False, f"in `{name}`, {OUTSIDE}") if said[1] is conventions.LOOP and _holds_its_loop(function) else said
    around = getattr(function.closure, "function", None)
    if around is not None and not (outer := by_itself(around))[0]:
        return outer
    if said[0] and (why := by_place(function.module.package[1:], Path(function.module.path).stem, name)):
        return False, why
    return said


def on_host(function: ProjectFunction) -> bool:
    """Whether its values are the data pipeline's, which live on the host."""
    cls = function.cls
    return bool(conventions.DATA.match(function.name)) or (
        cls is not None and (cls.name.endswith(conventions.DATA_CLASSES) or picks_rows(cls.name, cls.methods))
    )


def of_with(node: ast.With | ast.AsyncWith) -> tuple[bool, str] | None:
    """Cold inside `with torch.no_grad()`."""
    for item in node.items:
        call = item.context_expr
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _NO_GRAD:
            return False, "under no_grad: not in the training step"
    return None


def of_test(node: ast.expr) -> tuple[bool, str] | None:
    """Cold inside `if step % n == 0` and the like."""
    for part in node.values if isinstance(node, ast.BoolOp) else [node]:
        inner = part.operand if isinstance(part, ast.UnaryOp) else part
        inner = inner.left if isinstance(inner, ast.Compare) else inner
        if (
            isinstance(inner, ast.BinOp)
            and isinstance(inner.op, ast.Mod)
            and not isinstance(inner.left, (ast.Constant, ast.JoinedStr))
        ):
            return False, f"only when `{ast.unparse(node)}`"
        if _moved(part):
            return False, f"only when `{ast.unparse(part)}`: it is moved once"
        name = name_of(inner)
        if inner is part and conventions.on_cpu(name):
            return False, f"only when `{name}`"
        if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not) and name == "training":
            return False, f"only when `{ast.unparse(part)}`"
        if name in conventions.FLAGS:
            return False, f"only when `{ast.unparse(node)}`"
    return None


def _moved(test: ast.expr) -> bool:
    """Whether a test asks whether two values live in different places."""
    if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotEq)):
        return False
    sides = (test.left, test.comparators[0])
    return all(name_of(side).endswith("device") for side in sides) and any(isinstance(s, ast.Attribute) for s in sides)


def of_first(node: ast.If) -> tuple[bool, str] | None:
    """Cold where something is made because it is not there, and kept: `if self.mask is None: self.mask = ...`."""
    for part in node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]:
        if not isinstance(part, ast.Compare):
            inner = part.operand if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not) else None
            if name_of(inner).endswith("state"):
                return False, f"only when `{ast.unparse(part)}`: the first time"
            continue
        left, right, op = part.left, part.comparators[0], part.ops[0]
        kept, state = "", not isinstance(op, ast.Is)
        if isinstance(op, ast.Is) and isinstance(right, ast.Constant) and right.value is None:
            kept = dotted(left)
        elif isinstance(op, ast.NotIn):
            kept = dotted(right)
        elif isinstance(op, ast.Eq) and isinstance(left, ast.Call) and name_of(left.func) == "len" and left.args:
            kept = dotted(left.args[0])
        if (state and kept.endswith("state")) or any(_keeps(each, kept) for each in node.body if kept):
            return False, f"only when `{ast.unparse(part)}`: the first time"
    return None


def _keeps(statement: ast.stmt, name: str) -> bool:
    """Whether a statement keeps something: in the attribute of this name, as its item, or what has this name as an item."""
    if not isinstance(statement, ast.Assign):
        return False
    items = [target for target in statement.targets if isinstance(target, ast.Subscript)]
    places = [dotted(each.value) for each in items] + [dotted(each) for each in statement.targets]
    return ("." in name and name in places) or (bool(items) and dotted(statement.value) == name)


def of_else(node: ast.If) -> tuple[bool, str] | None:
    """Cold in the other arm of `if self.training`, and of one that ends by raising."""
    if name_of(node.test) == "training" and isinstance(node.test, ast.Attribute):
        return False, f"only when not `{ast.unparse(node.test)}`"
    return of_arm(node.orelse)


def of_arm(body: list[ast.stmt]) -> tuple[bool, str] | None:
    """Cold where an arm of an `if` ends by raising: it runs once, for the message."""
    return (False, "only before an error is raised") if isinstance(body[-1], ast.Raise) else None


def special(test: ast.expr) -> bool:
    """Whether what follows a test is for special values: another kind of device, one precision, a tensor of one number."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(map(special, test.values))
    if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Eq, ast.In))):
        return False
    kind, left = test.comparators[0], test.left
    if isinstance(left, ast.Attribute) and left.attr == "dtype":
        return True
    if isinstance(left, ast.Call) and isinstance(left.func, ast.Attribute) and left.func.attr == "numel":
        return isinstance(kind, ast.Constant) and kind.value == 1
    named = isinstance(kind, ast.Constant) and kind.value in ("cpu", "mps", "xla", "npu", "hpu", "mlu", "dml", "meta")
    return named and "device" in ast.unparse(left)
