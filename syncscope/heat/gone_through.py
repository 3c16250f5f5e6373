"""Functions of a list, a table or a module that a step goes through and calls: `for metric in self.metrics: metric(y, t)`.

What is gone through is filled elsewhere, under a name like its own: `metrics = [accuracy, top_5]`, `METRICS = {"f1": f1}`, or
from a module, `[getattr(module_metric, name) for name in config["metrics"]]`, of which it may be any function.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from syncscope.heat.brackets import up_to_closing
from syncscope.heat.imported import Imported
from syncscope.project.outline import FunctionText, plain

_OVER = re.compile(rb"for (?<!\wfor )(?:\w+, ?)?(\w+) in (?:\w+\.)*(\w+)(?:\.(?:items|values)\(\))?[ \t]*[:\]})\n]")
_LOOKED_UP = re.compile(rb"getattr\(\s*(\w+)\s*,\s*(?![\"'])")  # one of a module, by a name that stands elsewhere
_FILLS = rb"[=:][ \t]*+(?:[\[{(]|\w*+(?<=[dD]ict)\()"
_OPENS = re.compile(_FILLS)
_FILLED = re.compile(rb"\b(\w++)[\"']?+[ \t]*+(?::[^=\n]+)?" + _FILLS)
_PART = re.compile(rb"[\w.]")  # of a longer name
_NAME = re.compile(rb"(?<![\w.])\w+")
_LONGEST = 3000  # bytes of what fills something
_WORDS = re.compile(rb"[a-z]{5,}")  # of a name: shorter ones, as `fns`, say nothing


class _Said(NamedTuple):
    """What fills something: a function's name in a file, or the module that is asked there for names."""

    path: str
    name: str
    is_module: bool = False


class GoneThrough:
    """What may be called where a function calls one after another of what it goes through."""

    def __init__(
        self, sources: Mapping[str, bytes], functions: Mapping[str, Sequence[FunctionText]], imported: Imported
    ) -> None:
        self._sources, self._functions, self._imported = sources, functions, imported
        self._by_word: dict[bytes, list[FunctionText]] = {}

    def of(self, text: bytes) -> dict[str, list[FunctionText]]:
        """By a name that stands for one after another, and is called, the functions that it may stand for, if any."""
        found: dict[str, list[FunctionText]] = {}
        for name, through in _OVER.findall(text) if b"for " in text else ():
            if _is_called(name, text):
                same = {each.key: each for word in _stems(through) for each in self._called(word)}
                if same:
                    found[name.decode()] = list(same.values())
        return found

    def _called(self, word: bytes) -> list[FunctionText]:
        """The functions of what is called by a word: things that are filled, and modules that are asked for names."""
        if word not in self._by_word:
            self._by_word[word] = [each for said in self._told.get(word, ()) for each in self._of(said)]
        return self._by_word[word]

    def _of(self, said: _Said) -> Iterator[FunctionText]:
        if not said.is_module:
            yield from self._imported.meant(said.name, said.path, self._plain(said.name))
            return
        for name in self._functions:
            yield from (each for each in self._plain(name) if os.path.basename(each.path) == f"{said.name}.py")

    @cached_property
    def _told(self) -> Mapping[bytes, Sequence[_Said]]:
        """By a word what fills the things that are called by it: each file is gone through once, whatever is asked."""
        found: dict[bytes, list[_Said]] = defaultdict(list)
        own: dict[str, set[bytes]] = defaultdict(set)  # by a file the functions that it defines
        for each in (each for name in self._functions for each in self._plain(name)):
            own[each.path].add(each.name.encode())
        functions = {name for names in own.values() for name in names}
        for path, source in self._sources.items():
            meant = own[path] | (functions & {name.encode() for name in self._imported.names(path)})
            code = plain(source) if meant or b"getattr(" in source else b""
            for name, begin in _filled(code) if meant else ():
                filling = [each for each in _NAME.findall(up_to_closing(code, begin, _LONGEST)) if each in meant]
                for word in _stems(name) if filling else ():
                    found[word] += (_Said(path, each.decode()) for each in filling)
            owners = _LOOKED_UP.findall(code) if b"getattr(" in code else ()
            aliases = self._imported.aliases(path) if owners else {}
            for owner in owners:
                stem = aliases.get(owner.decode(), owner.decode())
                for word in _stems(stem.encode()):
                    found[word].append(_Said(path, stem, is_module=True))
        return found

    def _plain(self, name: str) -> list[FunctionText]:
        return [each for each in self._functions.get(name, ()) if not each.cls]


def _is_called(name: bytes, text: bytes) -> bool:
    """Whether a text calls a name: looked for as a word, as to make a pattern of each costs more than all looking."""
    call = name + b"("
    at = text.find(call)
    while at >= 0:
        if not (at and _PART.match(text, at - 1)):
            return True
        at = text.find(call, at + len(call))
    return False


def _filled(code: bytes) -> Iterator[tuple[bytes, int]]:
    """The names of what a text fills, and where what fills it begins; few lines hold what may begin there."""
    end = 0
    while opening := _OPENS.search(code, end):
        start, end = code.rfind(b"\n", 0, opening.start()) + 1, code.find(b"\n", opening.end())
        end = len(code) if end < 0 else end
        yield from ((filled[1], filled.end()) for filled in _FILLED.finditer(code, start, end))


def _stems(name: bytes) -> Collection[bytes]:
    """The words of a name, without what makes them many, in its order."""
    return dict.fromkeys(each.removesuffix(b"s") for each in _WORDS.findall(name.lower().replace(b"_", b" ")))
