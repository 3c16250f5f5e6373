"""Hot or cold: whether a place runs in every step, and the words that say why."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from functools import lru_cache
from pathlib import Path
from typing import Any

from syncscope.model.ops import ASKED, COPIES, Op
from syncscope.model.source import LINE_END, line_starts
from syncscope.tensors import conventions
from syncscope.tensors.project import Class, Module, ProjectFunction
from syncscope.tensors.syntax import dotted, last_word, name_of, statements, walk

_NO_GRAD = {"no_grad", "inference_mode"}
_MAYBE = "may run in every step"  # how the reason ends where there is none
_FARTHEST = 3  # callers of callers that are asked
TRAINING = (True, conventions.LOOP)  # known by the backward pass in it: outranks what the function is called

WARNED = (False, "only when it warns")
MOVED = (False, "it is moved once, and kept")


def trains(node: ast.For | ast.AsyncFor | ast.While, source: bytes) -> bool:
    """Whether a loop holds a backward pass: it is a training loop, whatever its function is called."""
    spoken_of = any(node.lineno <= line <= (node.end_lineno or 0) for line in _backward_lines(source))
    return spoken_of and any(
        isinstance(each, ast.Call) and getattr(each.func, "attr", "") in ("backward", "manual_backward")
        for each in walk(node)
    )


@lru_cache(maxsize=64)
def _backward_lines(source: bytes) -> tuple[int, ...]:
    """The lines that speak of a backward pass."""
    if b"backward(" not in source:
        return ()
    return tuple(n for n, line in enumerate(LINE_END.split(source), 1) if b"backward" in line)


@lru_cache(maxsize=64)
def _has_training_loop(node: ast.AST, source: bytes) -> bool:
    loops = (each for each in statements(node) if isinstance(each, (ast.For, ast.AsyncFor, ast.While)))
    return any(trains(loop, source) for loop in loops)


def of_function(function: ProjectFunction | None) -> tuple[bool, str]:
    """Hot or cold by the function, for what stands outside its loops: by itself, or because only cold ones call it."""
    return by_itself(function) if function is None else _by_its_callers(function, 0) or by_itself(function)


def _has_loop(function: ProjectFunction | None) -> bool:
    """Whether a loop is written in a function; where none is, its name alone says that it trains."""
    return function is not None and any(
        isinstance(s, (ast.For, ast.AsyncFor, ast.While)) for s in statements(function.node)
    )


def _by_its_callers(function: ProjectFunction, depth: int) -> tuple[bool, str] | None:
    """Cold, where only cold functions of its file call a private function, or only cold methods of its own a public method."""
    private = conventions.is_private(function.name)
    if depth > _FARTHEST or not (private or (function.cls is not None and by_itself(function)[1].endswith(_MAYBE))):
        return None
    why = ""
    for caller in _callers(function.module, function.name, private):
        if caller is None:
            return None
        if caller is not function:
            hot, why = _by_its_callers(caller, depth + 1) or by_itself(caller)
            if hot:
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
    lines = [bisect_right(starts, m.start()) for m in re.finditer(rb"\b%s\b" % name.encode(), module.source)]
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
    if op in ASKED and (why.endswith(_MAYBE) or (why is conventions.LOOP and not _has_loop(function))):
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
    cls = function.cls
    if cls is not None and conventions.ASIDE_CLASS.search(cls.name):
        return False, f"in `{cls.name}`: beside the training"
    sampler = cls is not None and "set_timesteps" in cls.methods
    if name in conventions.HOT and name != "__call__" and not sampler:
        if conventions.HOT[name] is conventions.LOOP and _has_training_loop(node, function.module.source):
            return False, f"in `{name}`, outside its training loop"
        return True, conventions.HOT[name]
    around = getattr(function.closure, "function", None)
    if around is not None and not (outer := by_itself(around))[0]:
        return outer
    if conventions.COLD.match(name):
        return False, f"in `{name}`: set-up"
    if conventions.REPARAMETRIZATION.search(name):
        return False, f"in `{name}`: weights are made anew, once"
    if conventions.RESULT.search(name) and "loss" not in name:
        return False, f"in `{name}`: a result, once an epoch"
    if (
        any(part.endswith("metrics") for part in function.module.package[1:])
        and "update" not in name
        and name != "forward"
    ):
        return False, f"in `{name}` of a metric: a result, once an epoch"
    if cls is not None and conventions.is_result_of(cls.name, name):
        return False, f"in `{name}` of a metric: a result, once an epoch"
    if conventions.CHECK.match(name):
        return False, f"in `{name}`: a check that is meant"
    stem = Path(function.module.path).stem
    if aside := conventions.ASIDE.intersection((*function.module.package[1:], stem.strip("_"))):
        return False, f"in `{min(aside)}`: beside the training"
    if conventions.ASIDE_WORD.search(stem):
        return False, f"in `{stem}`: beside the training"
    if conventions.DATA.match(name):
        return False, f"in `{name}`: data is prepared on the host"
    if conventions.EVALUATION.search(name):
        return False, f"in `{name}`: evaluation"
    if conventions.is_loss(name) or (cls is not None and conventions.is_loss(cls.name)):
        return True, f"in the loss `{name}`"
    if sampler and cls is not None and name not in conventions.NOISING:
        return False, f"in `{cls.name}`: it samples, when training is over"
    if cls is not None and (cls.name.endswith(conventions.PREPARING_CLASSES) or _picks_rows(cls)):
        return False, f"in `{cls.name}`: data is prepared on the host"
    return True, conventions.HOT.get(name, f"`{name}` {_MAYBE}")


def on_host(function: ProjectFunction) -> bool:
    """Whether its values are the data pipeline's, which live on the host."""
    cls = function.cls
    return bool(conventions.DATA.match(function.name)) or (
        cls is not None and (cls.name.endswith(conventions.DATA_CLASSES) or _picks_rows(cls))
    )


def _picks_rows(cls: Class) -> bool:
    """Whether it is a sampler of a data set, which gives indices one by one; others sample anchors or noise on the device."""
    return cls.name.endswith("Sampler") and "__iter__" in cls.methods


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
