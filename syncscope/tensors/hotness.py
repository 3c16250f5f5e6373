"""Hot or cold: whether a place runs in every step, and the words that say why."""

from __future__ import annotations

import ast
from functools import lru_cache

from syncscope.model.source import LINE_END
from syncscope.tensors import conventions
from syncscope.tensors.project import Class, Module, ProjectFunction
from syncscope.tensors.syntax import name_of, statements, walk

_NO_GRAD = {"no_grad", "inference_mode"}
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


def _by_its_callers(function: ProjectFunction, depth: int) -> tuple[bool, str] | None:
    """Cold, where a private function is called in cold functions of its file alone."""
    if not conventions.is_private(function.name) or depth > _FARTHEST:
        return None
    names = _callers(function.module).get(function.name, ())
    why = ""
    for caller in names:
        if caller is None:
            return None
        if caller is not function:
            hot, why = _by_its_callers(caller, depth + 1) or by_itself(caller)
            if hot:
                return None
    return (False, f"`{function.name}` is called {why}") if why else None


@lru_cache(maxsize=2)
def _callers(module: Module) -> dict[str, list[ProjectFunction | None]]:
    """The functions that call each private name of a file; None where it stands outside of all, or is handed on uncalled."""
    found: dict[str, list[ProjectFunction | None]] = {}
    known: dict[ast.AST, ProjectFunction] = {each.node: each for each in module.top}
    todo: list[tuple[ast.AST, ProjectFunction | None, bool]] = [(module.tree, None, False)]
    for node, function, called in todo:  # grows while it is gone through
        word = name_of(node)
        if word and conventions.is_private(word):
            found.setdefault(word, []).append(function if called else None)
        inside = known.get(node, function)
        func = node.func if isinstance(node, ast.Call) else None
        todo += [(each, inside, each is func) for each in ast.iter_child_nodes(node)]
    return found


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
    sampler = function.cls is not None and "set_timesteps" in function.cls.methods
    if name in conventions.HOT and not sampler:
        if conventions.HOT[name] is conventions.LOOP and _has_training_loop(node, function.module.source):
            return False, f"in `{name}`, outside its training loop"
        return True, conventions.HOT[name]
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
    aside = conventions.ASIDE.intersection(function.module.package[1:])
    if aside:
        return False, f"in `{min(aside)}`: beside the training"
    if conventions.DATA.match(name):
        return False, f"in `{name}`: data is prepared on the host"
    if conventions.EVALUATION.search(name):
        return False, f"in `{name}`: evaluation"
    if conventions.is_loss(name) or (function.cls is not None and conventions.is_loss(function.cls.name)):
        return True, f"in the loss `{name}`"
    cls = function.cls
    if sampler and cls is not None and name not in conventions.NOISING:
        return False, f"in `{cls.name}`: it samples, when training is over"
    if cls is not None and (cls.name.endswith(conventions.PREPARING_CLASSES) or _picks_rows(cls)):
        return False, f"in `{cls.name}`: data is prepared on the host"
    return True, f"`{name}` may run in every step"


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
        if name in conventions.FLAGS:
            return False, f"only when `{ast.unparse(node)}`"
    return None


def _moved(test: ast.expr) -> bool:
    """Whether a test asks whether two values live in different places."""
    if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotEq)):
        return False
    sides = (test.left, test.comparators[0])
    return all(name_of(side).endswith("device") for side in sides) and any(isinstance(s, ast.Attribute) for s in sides)


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
