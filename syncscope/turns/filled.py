"""Lists that hold numbers as written, and tensors in another version, which reads them later: `losses.append(loss.item())`.

Whichever version goes on with such a list has to find there what it would have put in itself.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

READS = re.compile(r"\.(?:item|tolist)\(|(?<![.\w])(?:float|int|bool)\(")  # in what is put in: it is a number
PUTS = frozenset({"append", "extend", "insert"})
Filled = Mapping[str, frozenset[int]]  # a list, as it is written, and the versions in which it holds tensors


def filled(written: Sequence[ast.AST], others: Mapping[int, Sequence[ast.AST]]) -> Filled:
    """The lists that are filled in these nodes with numbers, and with something else in some version."""
    found: dict[str, frozenset[int]] = {}
    numbers = {name for name, texts in _put_in(written).items() if all(map(READS.search, texts))}
    for version, nodes in others.items():
        for name, texts in _put_in(nodes).items():
            if name in numbers and not any(map(READS.search, texts)):
                found[name] = found.get(name, frozenset()) | {version}
    return found


def _put_in(nodes: Iterable[ast.AST]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for node in nodes:
        for target, value in _puts(node):
            if isinstance(target, ast.Name | ast.Attribute) and _is_plain(target):
                found.setdefault(ast.unparse(target), []).append(ast.unparse(value))
    return found


def _puts(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.AugAssign) and isinstance(node.value, ast.List):
        yield node.target, node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in PUTS and node.args:
        yield node.func.value, node.args[-1]


def _is_plain(node: ast.expr) -> bool:
    """Whether to look at it does nothing: `losses`, `self.losses`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


class Lists:
    """What such lists hold is made that of the version that goes on."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, str], int] = {}  # the version that saw it last, by passage and name
        self._like: dict[str, Callable[[list[Any]], Any]] = {}

    def alike(self, passage: int, name: str, version: int, tensors: bool, value: Any) -> None:
        """A list as a version begins that is to hold numbers of tensors, or of Python's; nothing where this one saw it last."""
        if self._last.get((passage, name)) != version:
            self._last[passage, name] = version
            self._make(name, tensors, value, None)

    def finish(self, passage: int, name: str, version: int, tensors: bool, value: Any) -> None:
        """The same as a version goes on with what was filled; where none of it is a tensor, on no device."""
        self._make(name, tensors, value, getattr(sys.modules.get("torch"), "tensor", None))

    def _make(self, name: str, tensors: bool, value: Any, otherwise: Callable[[list[Any]], Any] | None) -> None:
        if type(value) is not list:
            return
        known = [one for one in value if _is_number_of_a_tensor(one)]
        if known:
            self._like[name] = known[-1].detach().new_tensor
        if tensors and (made := self._like.get(name, otherwise)) is not None:
            _replace(value, lambda one: isinstance(one, int | float), lambda numbers: made(numbers).unbind())
        elif not tensors and known:
            _replace(value, _is_number_of_a_tensor, _numbers)

    def forget(self) -> None:
        """No version but that as written has seen any."""
        self._last.clear()


def _replace(values: list[Any], wanted: Callable[[Any], bool], made: Callable[[list[Any]], Sequence[Any]]) -> None:
    places = [at for at, one in enumerate(values) if wanted(one)]
    if places:
        for at, one in zip(places, made([values[at] for at in places]), strict=True):
            values[at] = one


def _is_number_of_a_tensor(value: Any) -> bool:
    return hasattr(value, "untyped_storage") and value.dim() == 0


def _numbers(tensors: list[Any]) -> list[Any]:
    return [one.item() for one in tensors]
