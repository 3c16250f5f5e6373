"""Functions that are alive, given the code of a tree of their file in which all versions are woven; and theirs again."""

from __future__ import annotations

import ast
import dis
import gc
import os
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

from syncscope.turns.selector import NAME

Codes = dict[tuple[str, int], CodeType]  # by the function's name in its file, and its first line


class Swapped:
    """All of them. `passages` are those of the trees that are reached through them, `stale` the files that hold other text than
    what runs."""

    def __init__(self) -> None:
        self.passages: set[int] = set()
        self.stale: set[str] = set()
        self._before: list[tuple[FunctionType, CodeType]] = []

    def put(self, files: Mapping[str, tuple[bytes, ast.Module]]) -> None:
        """By path (absolute, links resolved): the file as it is, and the tree."""
        codes = {path: _both(path, *said) for path, said in files.items()}
        real: dict[str, str] = {}
        for one in gc.get_objects():
            if type(one) is not FunctionType:
                continue
            name = one.__code__.co_filename
            path = real.get(name) or real.setdefault(name, os.path.realpath(name))
            if path in codes:
                self._give(one, path, *codes[path])

    def put_back(self) -> None:
        """All have their own again."""
        for function, code in self._before:
            function.__code__ = code
        self._before.clear()

    def _give(self, function: FunctionType, path: str, written: Codes, woven: Codes) -> None:
        own = function.__code__
        key = own.co_qualname, own.co_firstlineno
        if key not in written or not alike(own, written[key]):
            self.stale.add(path)
        elif key in woven and not alike(own, woven[key]) and own.co_freevars == woven[key].co_freevars:
            self._before.append((function, own))
            function.__code__ = woven[key]
            self.passages |= set(passages_in(woven[key]))


def alike(one: CodeType, other: CodeType) -> bool:
    """Whether two functions are of the same text: Python's own comparison knows what it has learned of one meanwhile."""
    return _told(one) == _told(other)


def passages_in(code: CodeType) -> Iterator[int]:
    """Those that a function asks for, and what is defined in it: `selector.at(number)`."""
    for one in nested(code):
        asked = ""
        for instruction in dis.get_instructions(one):
            if asked == "at" and isinstance(instruction.argval, int):
                yield instruction.argval
            goes_on = instruction.argval == NAME or (asked == NAME and instruction.argval == "at")
            asked = instruction.argval if goes_on else ""


def _both(path: str, raw: bytes, tree: ast.Module) -> tuple[Codes, Codes]:
    written, woven = (compile(what, path, "exec", dont_inherit=True) for what in (raw, tree))
    return _codes(written), _codes(woven)


def _codes(module: CodeType) -> Codes:
    """Those of which there is one at their line."""
    found: Codes = {}
    twice = set()
    for code in nested(module):
        key = code.co_qualname, code.co_firstlineno
        twice |= {key} & found.keys()
        found[key] = code
    return {key: code for key, code in found.items() if key not in twice}


def nested(code: CodeType) -> Iterator[CodeType]:
    """It, and all that is defined in it."""
    todo = [code]
    while todo:
        one = todo.pop()
        yield one
        todo += _codes_of(one.co_consts)


def _codes_of(values: Iterable[Any]) -> list[CodeType]:
    return [value for value in values if isinstance(value, CodeType)]


def _told(code: CodeType) -> tuple[Any, ...]:
    values = tuple(map(_constant, code.co_consts))
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, names, values, code.co_flags, code.co_argcount, code.co_kwonlyargcount, code.co_firstlineno


def _constant(value: object) -> tuple[Any, ...]:
    if isinstance(value, CodeType):
        return _told(value)
    return type(value), sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)
