"""What other files pass to a function that does not say what it takes."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any

from syncscope.heat.callers import stands
from syncscope.model.fact import UNKNOWN, Fact
from syncscope.model.source import line_starts
from syncscope.project.folders import located
from syncscope.project.modules import Class, Module, ProjectFunction
from syncscope.project.names import find_method, lookup
from syncscope.project.syntax import name_of, walk
from syncscope.tensors.facts import SCALAR, TENSOR, Tag
from syncscope.tensors.frame import Frame, execute
from syncscope.tensors.functions import used
from syncscope.tensors.instances import Instance
from syncscope.tensors.parameters import bind_parameters
from syncscope.tensors.passed import is_test

Recording = Mapping[type, Callable[[Frame, Any], Fact]]
Seen = dict[int, Fact]


class Elsewhere:
    """Answers for the functions of one file; each of those that call them is run once, for what is known of it by itself."""

    def __init__(self, table: Recording) -> None:
        self.table = table
        self._seen: dict[ProjectFunction, Seen] = {}

    def to(self, function: ProjectFunction, paths: Iterable[str]) -> Iterator[dict[str, Fact]]:
        """What each call in these files passes for the parameters of a function, or a method, of another."""
        for path in paths:
            module = function.module.project.at(located(path))
            if module is None:
                continue
            words = _words(module, function.name)
            for caller in _speaking(module, words):
                if is_test(caller):
                    continue
                calls = [
                    each for each in walk(caller.node) if isinstance(each, ast.Call) and name_of(each.func) in words
                ]
                seen = self._run(caller) if calls else {}
                for call in calls:
                    if _is_same(_meant(seen, call.func), function):
                        yield _given(seen, call, function, caller)

    def _run(self, caller: ProjectFunction) -> Seen:
        """What the expressions of a function are, whoever calls it."""
        seen = self._seen.get(caller)
        if seen is None:
            seen = self._seen[caller] = {}
            if not caller.running:
                frame = Frame(caller.module, caller)
                frame.seen, frame.table, frame.used = seen, self.table, used(caller)
                caller.running = True
                try:
                    bind_parameters(caller, frame)
                    execute(frame, caller.node.body)
                except RecursionError:
                    pass  # which is said of that file, not of this one
                finally:
                    caller.running = False
        return seen


def _words(module: Module, name: str) -> set[str]:
    """What a function of another file may be called in this one: `from rates import scaled as rescaled`."""
    found = {name}
    for local, symbols in module.bound.items():
        symbol = symbols[0] if symbols else None
        if isinstance(symbol, ast.ImportFrom) and any(
            each.name == name and each.asname == local for each in symbol.names
        ):
            found.add(local)
    return found


def _speaking(module: Module, words: set[str]) -> Iterator[ProjectFunction]:
    """The functions and methods of a file whose text holds one of these words."""
    starts = line_starts(module.source)
    offsets = [at for word in words for at in stands(word.encode(), module.source)]

    def speaks(node: ast.stmt) -> bool:
        first, last = starts[node.lineno - 1], node.end_lineno or node.lineno
        end = starts[last] if last < len(starts) else len(module.source)
        return any(first <= at < end for at in offsets)

    for statement in module.tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and speaks(statement):
            ref = lookup(module, statement.name).ref
            if isinstance(ref, Class) and ref.node is statement:
                yield from (method for method in ref.methods.values() if speaks(method.node))
            elif isinstance(ref, ProjectFunction) and ref.node is statement:
                yield ref


def _meant(seen: Seen, func: ast.expr) -> object:
    """What a call calls: a name, an attribute of a module, or a method of an object whose class is known."""
    match func:
        case ast.Name():
            return seen.get(id(func), UNKNOWN).ref
        case ast.Attribute(value=of, attr=name):
            owner = seen.get(id(of), UNKNOWN).ref
            if isinstance(owner, Module):
                return lookup(owner, name).ref
            return find_method(owner.cls, name) if isinstance(owner, Instance) else None
    return None


def _is_same(ref: object, function: ProjectFunction) -> bool:
    """Whether this is that function, as it is seen from another file."""
    return (
        isinstance(ref, ProjectFunction)
        and (ref.cls.name if ref.cls else "") == (function.cls.name if function.cls else "")
        and ref.name == function.name
        and ref.node.lineno == function.node.lineno
        and ref.module.parsed.path == function.module.parsed.path
    )


def _given(seen: Seen, call: ast.Call, function: ProjectFunction, caller: ProjectFunction) -> dict[str, Fact]:
    """What a call passes, in words that hold in the file of what it calls."""
    of_object = function.cls is not None and "staticmethod" not in function.decorators()
    names = function.names[1:] if of_object else function.names
    positional = takewhile(lambda each: not isinstance(each, ast.Starred), call.args)
    named = ((each.arg, each.value) for each in call.keywords if each.arg is not None)
    found: dict[str, Fact] = {}
    for name, argument in (*zip(names, positional, strict=False), *named):
        fact = seen.get(id(argument), UNKNOWN)
        if fact.ref is Tag.PERHAPS_OF_HOST:
            continue
        if fact.kind is TENSOR:
            why = f"`{caller.name}` in {os.path.basename(caller.module.path)} passes a tensor as `{name}`"
            found[name] = Fact(
                TENSOR, fact.dtype, fact.device, ndim=fact.ndim, confidence=min(fact.confidence, 2), why=why
            )
        elif fact.kind is SCALAR:
            found[name] = Fact(SCALAR, fact.dtype, fact.device, confidence=fact.confidence)
    return found
