"""Which names add up what they are given, and which hold only the last of it: `total += x`, and `x = loss.item()`.

A version may read a value where it is used, once in ten steps: then a name that holds the last one holds fewer of them, and
nobody misses the others. Of a sum, a list or the best so far none may be missed.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

MUTATORS = frozenset("append appendleft extend insert add".split())


def adds_up(path: str, name: str) -> bool:
    """Whether what a file's name holds (`f: total`, `f: meter.sum`, `f: history[3]`) comes of what it held; so, where that is
    not known."""
    tree = _tree(path)
    return tree is None or any(_needs_itself(node, _Target(name.partition(": ")[2])) for node in ast.walk(tree))


@lru_cache(maxsize=64)
def _tree(path: str) -> ast.Module | None:
    try:
        return ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


class _Target:
    """What is looked for: a name, or an attribute of whatever it is of; an element stands for what it is in."""

    def __init__(self, text: str) -> None:
        words = re.match(r"\w+((?:\.\w+)*)", text)
        self._name = re.split(r"\W", text)[0]
        self._attribute = words[1].rpartition(".")[2] if words else ""

    def __call__(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Subscript):
            return self(node.value)
        if self._attribute:
            return isinstance(node, ast.Attribute) and node.attr == self._attribute
        return isinstance(node, ast.Name) and node.id == self._name

    def within(self, node: ast.AST) -> bool:
        return any(map(self, ast.walk(node)))


def _needs_itself(node: ast.AST, is_target: _Target) -> bool:
    if isinstance(node, ast.AugAssign):
        return is_target(node.target)
    if isinstance(node, ast.Assign):
        targets = [part for target in node.targets for part in ast.walk(target)]
        return any(map(is_target, targets)) and is_target.within(node.value)
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        return is_target.within(node.test)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in MUTATORS and is_target(node.func.value)
    return False
