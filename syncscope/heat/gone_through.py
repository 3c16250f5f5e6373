"""Functions of a list, a table or a module that a step goes through and calls: `for metric in self.metrics: metric(y, t)`.

What is gone through is filled elsewhere, under a name like its own: `metrics = [accuracy, top_5]`, `METRICS = {"f1": f1}`, or
from a module, `[getattr(module_metric, name) for name in config["metrics"]]`, of which it may be any function.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from syncscope.heat.imported import Imported
from syncscope.project.outline import FunctionText, plain

_OVER = re.compile(rb"\bfor (?:\w+, ?)?(\w+) in (?:\w+\.)*(\w+)(?:\.(?:items|values)\(\))?[ \t]*[:\]})\n]")
_LOOKED_UP = re.compile(rb"getattr\(\s*(\w+)\s*,\s*(?![\"'])")  # one of a module, by a name that stands elsewhere
_FILLED = re.compile(rb"(\w+)[\"']?[ \t]*(?::[^=\n]+)?[=:][ \t]*([\[{(]|\w*[dD]ict\()")
_ENDS = re.compile(rb"[\[\](){}]")
_LONGEST = 3000  # bytes of what fills something
_WORDS = re.compile(rb"[a-z]{5,}")  # of a name: shorter ones, as `fns`, say nothing


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
            if re.search(rb"(?<![\w.])%b\(" % name, text):
                same = {each.key: each for word in _stems(through) for each in self._called(word)}
                if same:
                    found[name.decode()] = list(same.values())
        return found

    def _called(self, word: bytes) -> list[FunctionText]:
        """The functions of what is called by a word: things that are filled, and modules that are asked for names."""
        if word not in self._by_word:
            every = (
                each
                for path, source in self._sources.items()
                if word in source.lower()
                for each in self._in(path, source, word)
            )
            self._by_word[word] = list(every)
        return self._by_word[word]

    def _in(self, path: str, source: bytes, word: bytes) -> Iterator[FunctionText]:
        code = plain(source)
        for filled in _FILLED.finditer(code):
            if word in _stems(filled[1]):
                for name in re.findall(rb"(?<![\w.])\w+", _up_to_end(code, filled.end())):
                    yield from self._imported.meant(name.decode(), path, self._plain(name.decode()))
        aliases = self._imported.aliases(path)
        for owner in _LOOKED_UP.findall(code) if b"getattr(" in code else ():
            stem = aliases.get(owner.decode(), owner.decode())
            if word in _stems(stem.encode()):
                every = (each for name in self._functions for each in self._plain(name))
                yield from (each for each in every if os.path.basename(each.path) == f"{stem}.py")

    def _plain(self, name: str) -> list[FunctionText]:
        return [each for each in self._functions.get(name, ()) if not each.cls]


def _stems(name: bytes) -> set[bytes]:
    """The words of a name, without what makes them many."""
    return {each.removesuffix(b"s") for each in _WORDS.findall(name.lower().replace(b"_", b" "))}


def _up_to_end(code: bytes, begin: int) -> bytes:
    """A text up to the bracket that closes what it stands in."""
    deep = 1
    for match in _ENDS.finditer(code, begin, begin + _LONGEST):
        deep += 1 if match[0] in b"[({" else -1
        if not deep:
            return code[begin : match.start()]
    return b""
