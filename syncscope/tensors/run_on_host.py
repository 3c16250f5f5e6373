"""Functions that are called only where a test says that what they are given lives on the host: nothing waits in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from syncscope.project.modules import ProjectFunction
from syncscope.project.of_file import kept
from syncscope.project.syntax import last_word, text_of, walk

_ASKS = re.compile(rb"\.device(\.type)?\s*[=!]=\s*[\"']cpu|\.is_cpu\b")


def runs_on_host(function: ProjectFunction) -> bool:
    """Whether a private function is called in `if x.device.type == "cpu"` each time, and spoken of nowhere else in its file."""
    if not function.name.startswith("_") or function.name.startswith("__"):
        return False  # others may call it from other files
    module = function.module
    return _asks(module.source) and function.name in _called_on_host(module.parsed.tree)


@lru_cache(maxsize=4)  # asked for one function after the other
def _asks(source: bytes) -> bool:
    return _ASKS.search(source) is not None


@kept(4)  # asked for one function after the other; each holds a tree
def _called_on_host(tree: ast.Module) -> frozenset[str]:
    here: set[str] = set()
    inside: set[int] = set()
    for each in walk(tree):
        if isinstance(each, ast.If):
            for statement in _arm_of_host(each):
                for node in walk(statement):
                    if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
                        here.add(last_word(node.func))
                        inside.add(id(node.func))
    if not here:
        return frozenset()
    return frozenset(here - set(_spoken_of(tree, inside)))


def _spoken_of(tree: ast.Module, inside: set[int]) -> Iterator[str]:
    """The names of what is read anywhere but in these calls, or is looked up by its name."""
    for each in walk(tree):
        if isinstance(each, (ast.Name, ast.Attribute)) and id(each) not in inside:
            yield last_word(each)
        elif (text := text_of(each)) is not None:
            yield text


def _arm_of_host(node: ast.If) -> list[ast.stmt]:
    """The arm of a branch that runs only for tensors of the host."""
    match node.test:
        case ast.Compare(left=ast.Attribute() as of, ops=[op], comparators=[ast.Constant(value="cpu")]) if _is_place(
            of
        ):
            return node.body if isinstance(op, ast.Eq) else node.orelse if isinstance(op, ast.NotEq) else []
        case ast.Attribute(attr="is_cpu"):
            return node.body
    return []


def _is_place(node: ast.Attribute) -> bool:
    """`x.device` and `x.device.type`."""
    of = node.value
    return node.attr == "device" or (node.attr == "type" and isinstance(of, ast.Attribute) and of.attr == "device")
