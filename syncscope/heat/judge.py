"""Hot or cold: whether a place runs in every step, and the words that say why."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from syncscope.heat.by_name import by_name, by_place, known_by_name, picks_rows
from syncscope.heat.by_role import by_role
from syncscope.heat.loops import LOOPS, NO_GRAD, backward_lines, trains
from syncscope.heat.reach import called_alone
from syncscope.model.heat import Heat, Reason, Role
from syncscope.model.source import line_starts
from syncscope.project import conventions
from syncscope.project.modules import Class, Module, ProjectFunction
from syncscope.project.names import ancestry, bases
from syncscope.project.syntax import expressions, name_of, statements, walk

_IN_WORD = re.compile(rb"\w")
_FARTHEST = 3  # callers of callers that are asked


@lru_cache(maxsize=64)
def _holds_its_loop(function: ProjectFunction) -> bool:
    """Whether one of its loops is known to train; else all of it may be what does."""
    return any(
        isinstance(each, LOOPS) and trains(each, function.name, function.module.source) for each in walk(function.node)
    )


@lru_cache(maxsize=64)
def _holds_all_steps(function: ProjectFunction) -> bool:
    """Whether one of its loops goes over many steps, each with a backward pass and an optimizer's step: an update of a whole
    rollout, not a step that adds up gradients or goes over its networks.
    """
    source = function.module.source
    node = function.node
    if not any(node.lineno <= line <= (node.end_lineno or 0) for line in backward_lines(source)):
        return False
    return any(
        isinstance(each, (ast.For, ast.AsyncFor))
        and any(conventions.MANY.search(name_of(part)) for part in walk(ast.Tuple([each.target, each.iter])))
        and trains(each, function.name, source)
        and any(isinstance(part, ast.Call) and name_of(part.func) == "step" for part in walk(each))
        for each in walk(node)
    )


def _makes_weights(function: ProjectFunction) -> bool:
    """Whether it makes parameters of a module: `self.weight = nn.Parameter(...)`."""
    node, source = function.node, function.module.source
    starts = line_starts(source)
    begin, end = starts[node.lineno - 1], starts[min(node.end_lineno or node.lineno, len(starts) - 1)]
    return source.find(b"Parameter(", begin, end) >= 0 and any(
        isinstance(each, ast.Assign)
        and isinstance(each.value, ast.Call)
        and name_of(each.value.func) == "Parameter"
        and any(isinstance(target, ast.Attribute) for target in each.targets)
        for each in walk(node)
    )


def _keeps_by_hand(function: ProjectFunction) -> bool:
    """Whether it gives what it has kept under a key, before it makes anything: `if key in self.kept: return self.kept[key]`."""
    return any(
        isinstance(each, ast.If)
        and isinstance(each.test, ast.Compare)
        and isinstance(each.test.ops[0], ast.In)
        and isinstance(each.body[-1], ast.Return)
        and isinstance(given := each.body[-1].value, ast.Subscript)
        and name_of(given.value) == name_of(each.test.comparators[0])
        for each in function.node.body
    )


def _gives(function: ProjectFunction) -> bool:
    """Whether it gives anything back."""
    return any(isinstance(each, ast.Return) and each.value is not None for each in walk(function.node))


@lru_cache(maxsize=64)
def _calls_steps(function: ProjectFunction) -> bool:
    """Whether it calls what may be a step, or may hold the loop over them; `model.train()` is neither."""
    called = (name_of(each.func) for each in walk(function.node) if isinstance(each, ast.Call))
    return any(conventions.STEP.search(name) and name != "train" for name in called)


def of_wait(around: Heat | None, function: ProjectFunction | None, module: Module) -> Heat:
    """Hot or cold by what a wait stands in: the loop or the arm around it, its function, its file."""
    if beside := _of_file(module):
        return beside
    said = of_function(function)
    if around is None or (
        around.hot
        and around.reason is not Reason.TRAINING
        and function is not None
        and not (said.hot or said.reason is Reason.OUTSIDE)
    ):
        return said
    return around


@lru_cache(maxsize=64)
def _of_file(module: Module) -> Heat | None:
    """Cold, where all of a file is."""
    path = Path(module.path)
    if conventions.TEST_FILE.search(path.stem) or {path.parent.name, Path(module.package[0]).name} & {"test", "tests"}:
        return Reason.TESTS()
    if path.suffix == ".ipynb" and any(map(conventions.teaches, (path.stem, *path.parts[-4:-1]))):
        return Reason.TEACHES()
    return None


@lru_cache(maxsize=64)
def of_function(function: ProjectFunction | None) -> Heat:
    """Hot or cold by the function, for what stands outside its loops: by itself, or by who speaks of it."""
    said = by_itself(function)
    if function is None or not said.hot:
        return said
    return by_role(function, said.reason is Reason.MAYBE) or _by_its_callers(function, 0) or said


def _by_its_callers(function: ProjectFunction, depth: int) -> Heat | None:
    """Cold, where only cold functions of its file call a private function, or only cold methods of its own a public method."""
    private = conventions.is_private(function.name)
    owner, module = function.cls.name if function.cls is not None else "", function.module
    if private and module.project.role(module.path, function.name, owner) in (Role.SHARED, Role.CALLED):
        return None
    if depth > _FARTHEST or not (private or (function.cls is not None and by_itself(function).reason is Reason.MAYBE)):
        return None
    said = None
    for caller in _callers(function.module, function.name, private):
        if caller is None:
            return None
        if caller is not function:
            said = _by_its_callers(caller, depth + 1) or by_itself(caller)
            if said.hot or said.reason is Reason.OUTSIDE:
                return None
    return Reason.CALLED_COLD(function.name, of=said) if said is not None else None


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
            found += [function if called else None for called in _uses(function.node, name, inside, anyhow)]
    if lines:
        found += [None for node in _on(lines, module.tree) if name_of(node) == name and node.lineno in lines]  # type: ignore[attr-defined]
    return found


def _stands(word: bytes, text: bytes) -> Iterator[int]:
    """Where a word stands by itself: found as bytes, in a tenth of the time that a pattern would take."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not (_IN_WORD.match(text, at - 1) if at else None) and not _IN_WORD.match(text, end):
            yield at
        at = text.find(word, end)


def _on(lines: list[int], root: ast.AST) -> Iterator[ast.AST]:
    """The nodes of the statements that stand on these lines, from the outside in."""
    for each in statements(root):
        headed = hasattr(each, "decorator_list") or not hasattr(each, "lineno")  # which may begin above its own line
        if headed or any(each.lineno <= line <= each.end_lineno for line in lines):  # type: ignore[attr-defined]
            yield from expressions(each)


def _uses(root: ast.AST, name: str, lines: list[int], anyhow: bool) -> list[bool]:
    """For each place on these lines where a name stands, also as an attribute, whether it is called there, of `self` unless
    `anyhow`."""
    uses: dict[int, bool] = {}
    for node in _on(lines, root):  # a call comes before what it calls
        if node.__class__ is ast.Call:
            func: Any = node.func
            if name_of(func) == name:
                uses[id(func)] = anyhow or name_of(getattr(func, "value", None)) in ("self", "cls")
        elif name_of(node) == name:
            uses.setdefault(id(node), False)
    return list(uses.values())


@lru_cache(maxsize=64)
def by_itself(function: ProjectFunction | None) -> Heat:
    """Hot or cold by the function alone, and by whether a step calls what its name, its folder or `no_grad` makes cold."""
    if function is None:
        return Reason.TOP_LEVEL()
    said = _by_what_it_is(function)
    soft = said.reason in conventions.SOFT and function.closure is None and not conventions.NEVER.match(function.name)
    owner, module = function.cls.name if function.cls is not None else "", function.module
    if soft and (
        module.project.role(module.path, function.name, owner) is Role.CALLED
        or f"{owner}.{function.name}" in _called_alone(module)
    ):
        return Reason.CALLED(function.name)
    return said


@lru_cache(maxsize=4)
def _called_alone(module: Module) -> frozenset[str]:
    """What the steps of the file itself call, also where it is in no project, or trains at its top level."""
    return called_alone(module.path, module.source, module.tree)


def _by_what_it_is(function: ProjectFunction) -> Heat:
    name = function.name
    node = function.node
    frozen = False
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        frozen = frozen or name_of(target) in NO_GRAD
        if name_of(target) in ("cache", "lru_cache", "cached_property"):
            return Reason.CACHED(name)
        if name_of(target) == "command":
            return Reason.COMMAND(name)
        if name_of(target) == "setter":
            return Reason.SETTER(name)
    owner, methods = (function.cls.name, function.cls.methods) if function.cls is not None else ("", ())
    said = by_name(name, owner, methods)
    drawn_from = function.cls is not None and _of_distributions(function.cls)
    if drawn_from and (said.reason is Reason.DATA or name == "__init__"):
        said = Reason.MAYBE(name)  # made anew in each step, most often
    if said.hot and known_by_name(name, methods):
        package, stem = function.module.package[1:], Path(function.module.path).stem.strip("_")
        if conventions.NO_STEPS.intersection(package) or stem in conventions.EXPORTS:
            return by_place(package, stem, name) or Reason.SILENT()
        if stem in conventions.TRANSFORMS and b"torchvision" in function.module.source:
            return Reason.DATA(owner or name)
        if said.reason is Reason.LOOP and _holds_its_loop(function):
            return Reason.OUTSIDE(name)
        given = {*function.names} - {"self", "mode"}  # a `train` that takes a batch may be a step itself
        if said.reason is Reason.LOOP and (name == "fit" or not given) and not _calls_steps(function):
            return Reason.NO_STEP(name)
        return said
    if frozen and said.hot:
        return Reason.NO_GRAD()
    around = getattr(function.closure, "function", None)
    if around is not None and not (outer := by_itself(around)).hot and outer.reason is not Reason.OUTSIDE:
        return outer  # what is made before a training loop may be what runs in it
    if said.reason is Reason.MAYBE:
        if _holds_all_steps(function):
            return Reason.OUTSIDE(name)
        if conventions.STATISTICS.match(name) and not _gives(function):
            return Reason.LOG(name)
        if conventions.DATA_SETS.intersection(each.arg for each in (*node.args.args, *node.args.kwonlyargs)):
            return Reason.DATA_SET(name)
        if _makes_weights(function):
            return Reason.NEW_WEIGHTS(name)
        if _keeps_by_hand(function):
            return Reason.KEEPS(name)
    placed = said.hot and not drawn_from  # `transforms.py` of distributions is none of data
    beside = by_place(function.module.package[1:], Path(function.module.path).stem, name) if placed else None
    return beside or said


def _of_distributions(cls: Class) -> bool:
    """Whether a class is a distribution, or what distributions are transformed by, and no transform of data."""
    kin = ancestry(cls)
    named = (base.ref for each in kin for base in bases(each))
    return any("log_abs_det_jacobian" in each.methods for each in kin) or any(
        isinstance(ref, str) and ref.startswith("torch.distributions.") for ref in named
    )


def on_host(function: ProjectFunction) -> bool:
    """Whether its values are the data pipeline's, which live on the host."""
    cls = function.cls
    return bool(conventions.DATA.match(function.name)) or (
        cls is not None and (cls.name.endswith(conventions.DATA_CLASSES) or picks_rows(cls.name, cls.methods))
    )
