"""Flags that are off unless somebody turns them on, which nothing does that a program's training loops call."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from syncscope.project.outline import FunctionText
from syncscope.project.syntax import name_of, walk

_PARAMETERS = re.compile(rb"[ \t]*\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_PARAMETER = re.compile(rb"(?:^|,)\s*(\**\w+|\*)\s*(?::[^=,]*)?(?:=\s*([^,]+))?")
_CALLED = frozenset(("forward", "__call__"))  # by whatever the object is called


class Switch(NamedTuple):
    """A parameter that is False where nobody gives it."""

    function: FunctionText
    name: str
    position: int  # among the arguments, without `self`

    @property
    def key(self) -> str:
        """What no other flag of the project is called, as a role is asked for."""
        return f"{self.function.key}({self.name})"


def flags(functions: Iterable[FunctionText]) -> Iterator[Switch]:
    """The flags of functions."""
    for each in functions:
        text = each.text()
        head = _PARAMETERS.match(text)
        if head is None or b"False" not in head[1]:
            continue
        at = -1 if each.cls else 0
        for name, default in _PARAMETER.findall(head[1]):
            if default.strip() == b"False":
                yield Switch(each, name.decode(), at)
            at += 1


def off(
    functions: Collection[FunctionText],
    trees: Iterable[tuple[str, ast.Module]],
    known: Collection[str],
    derived: Mapping[str, Collection[str]],
) -> set[str]:
    """The keys of flags that no call turns on, in these functions and at the top level of these files.

    `known` are the names of all functions and classes of the project, `derived` by a class those derived from it.
    """
    by_name: dict[str, list[Switch]] = defaultdict(list)
    called: dict[str, list[Switch]] = defaultdict(list)
    for flag in flags(functions):
        by_name[flag.name].append(flag)
        for name in _names(flag.function, derived):
            called[name].append(flag)
    left = {flag.key for same in by_name.values() for flag in same}
    on: list[str] = []
    handed: dict[str, set[str]] = defaultdict(set)  # by the key of a flag those that are what it is
    calling = {each.key for each in functions}
    for path, tree in trees if left else ():
        for around, call in _calls(path, tree, calling):
            name, args = name_of(call.func), call.args
            if name == "partial" and args:
                name, args = name_of(args[0]), args[1:]
            meant = called.get(name, ())
            if name == "__init__":  # of what the class around is derived from
                cls = around.rpartition(":")[2].partition(".")[0]
                meant = [flag for flag in meant if cls in derived.get(flag.function.cls, ())]
            given = [(flag, value) for flag in meant for value in _given(flag, args, call.keywords)]
            if name not in known:  # an object, or what else is called later
                given += [(flag, each.value) for each in call.keywords for flag in by_name.get(each.arg or "", ())]
            for flag, value in given:
                source = _source(value, around)
                if source is not None and source in left:
                    handed[source].add(flag.key)
                elif not (isinstance(value, ast.Constant) and not value.value):
                    on.append(flag.key)
    for key in on:  # grows while it is gone through
        if key in left:
            left.remove(key)
            on += handed[key]
    return left


def _names(function: FunctionText, derived: Mapping[str, Collection[str]]) -> Iterator[str]:
    """What it is called by."""
    if function.name == "__init__":
        yield from (function.cls, *derived.get(function.cls, ()))
    yield function.name


def _calls(path: str, tree: ast.Module, calling: Collection[str]) -> Iterator[tuple[str, ast.Call]]:
    """The calls in these functions of a file, each with the function's key, and outside of all functions."""
    todo: list[tuple[str, ast.AST]] = [("", each) for each in tree.body]
    for cls, node in todo:  # grows while it is gone through
        if isinstance(node, ast.ClassDef):
            todo += [(node.name, each) for each in node.body]
            continue
        is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        key = f"{path}:{cls}.{getattr(node, 'name', '')}"
        if not is_function or key in calling:
            yield from ((key, each) for each in walk(node) if isinstance(each, ast.Call))


def _given(flag: Switch, args: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> Iterator[ast.expr]:
    """What a call of what has a flag gives for it, or may do so."""
    for keyword in keywords:
        hidden = keyword.arg is None and flag.function.name not in _CALLED and name_of(keyword.value) != "kwargs"
        if keyword.arg == flag.name or hidden:
            yield keyword.value
    for at, each in enumerate(args[: flag.position + 1]):
        if at == flag.position or isinstance(each, ast.Starred):
            yield each


def _source(node: ast.expr, around: str) -> str | None:
    """The flag of the function around, or of its object, that is handed on."""
    match node:
        case ast.Name(id=name):
            return f"{around}({name})"
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return f"{around.rpartition('.')[0]}.__init__({name})"
    return None
