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
    switches = _Switches(flags(functions), known, derived)
    calling = {each.key for each in functions}
    for path, tree in trees if switches.keys else ():
        for around, call in _calls(path, tree, calling):
            switches.take(around, call)
    return switches.off()


class _Switches:
    """The flags of a project, what turns them on, and what hands them on."""

    def __init__(
        self, switches: Iterable[Switch], known: Collection[str], derived: Mapping[str, Collection[str]]
    ) -> None:
        self._known, self._derived = known, derived
        self._by_name: dict[str, list[Switch]] = defaultdict(list)
        self._called: dict[str, list[Switch]] = defaultdict(list)  # by what their functions are called by
        self._on: list[str] = []
        self._handed: dict[str, set[str]] = defaultdict(set)  # by the key of a flag those that are what it is
        for flag in switches:
            self._by_name[flag.name].append(flag)
            for name in _names(flag.function, derived):
                self._called[name].append(flag)
        self.keys = {flag.key for same in self._by_name.values() for flag in same}

    def take(self, around: str, call: ast.Call) -> None:
        """Note what a call gives for flags; `around` is the key of the function that it is made in."""
        for flag, value in self._given(around, call):
            source = _source(value, around)
            if source is not None and source in self.keys:
                self._handed[source].add(flag.key)
            elif not (isinstance(value, ast.Constant) and not value.value):
                self._on.append(flag.key)

    def _given(self, around: str, call: ast.Call) -> Iterator[tuple[Switch, ast.expr]]:
        """The flags that a call may give something for, each with that."""
        name, args = name_of(call.func), call.args
        if name == "partial" and args:
            name, args = name_of(args[0]), args[1:]
        cls = around.rpartition(":")[2].partition(".")[0] if name == "__init__" else ""
        for flag in self._called.get(name, ()):
            if name != "__init__" or cls in self._derived.get(
                flag.function.cls, ()
            ):  # of what the class is derived from
                yield from ((flag, value) for value in _given(flag, args, call.keywords))
        if name not in self._known:  # an object, or what else is called later
            for each in call.keywords:
                yield from ((flag, each.value) for flag in self._by_name.get(each.arg or "", ()))

    def off(self) -> set[str]:
        """The keys of flags that nothing has turned on, nor what it hands on."""
        left, on = set(self.keys), self._on
        for key in on:  # grows while it is gone through
            if key in left:
                left.remove(key)
                on += self._handed[key]
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
