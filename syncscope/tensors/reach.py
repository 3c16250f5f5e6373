"""What runs in the steps of a project: the functions that a step speaks of, itself or through others, by name.

A project is gone through as text, which costs a twentieth of parsing it. A name stands for all functions, or all methods, that
have it: what is said to be reached may not be, what is said not to be is spoken of by nothing that trains.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from syncscope.files import regular
from syncscope.tensors.hotness_by_name import MAYBE, by_name, by_place

_DEFINED = re.compile(rb"\n([ \t]*)(?:async )?(def|class) (\w+)")
_IMPORTED = re.compile(rb"^(?:from|import)\b[^\n(]*(?:\([^)]*\))?", re.MULTILINE)
# A function kept to be called later: `self.prepare = prepare`, `partial(prepare, cutoff=5)`.
_KEPT = re.compile(rb"(?:\.\w+ = |partial\(\s*)(?:\w+\.)*(\w+)[ \t]*[,)\n]")
_WORDS = bytes(c if chr(c).isalnum() or c in b"_." or c > 127 else ord(" ") for c in range(256))
_ENTRANCES = frozenset(("bin", "cli", "scripts", "tools"))  # where programs stand that train


@dataclass(frozen=True, slots=True)
class Reach:
    """The names of what runs in steps: functions, spoken of by any name or attribute, and methods, by an attribute."""

    functions: frozenset[str]
    methods: frozenset[str]

    def holds(self, name: str, method: bool) -> bool:
        """Whether one of this name is reached; what Python calls by itself is."""
        return name.startswith("__") or name in (self.methods if method else self.functions)


@dataclass(frozen=True, slots=True)
class _Written:
    """A function as text."""

    name: str
    cls: str
    source: bytes
    begin: int
    end: int
    hotness: tuple[bool, str]
    beside: bool  # in a file beside the training

    def is_step(self) -> bool:
        """Whether it is known to run in every step."""
        hot, why = self.hotness
        known = hot and not why.endswith(MAYBE)
        return known or self.source.find(b"backward(", self.begin, self.end) >= 0

    def words(self) -> set[bytes]:
        """What it speaks of: names, and attributes with their point."""
        return _words(self.source[self.begin : self.end])


def _words(text: bytes) -> set[bytes]:
    plain = b" ".join(text.split(b'"""')[::2])
    return set(plain.translate(_WORDS).replace(b".", b" .").split())


def reach(root: Path, paths: Iterable[str]) -> Reach | None:
    """What the steps of these files reach; None where they hold no step."""
    functions: dict[bytes, list[_Written]] = defaultdict(list)
    methods: dict[bytes, list[_Written]] = defaultdict(list)
    steps: list[_Written] = []
    todo: list[_Written] = []
    spoken: set[bytes] = set()  # by files themselves, outside of all functions
    for path in paths:
        try:
            source = regular(path)
        except OSError:
            continue
        if b"torch" not in source and b"backward(" not in source:
            continue
        package = [each for each in Path(path).relative_to(root.parent).parts[:-1] if each not in _ENTRANCES]
        source = b"\n" + source.replace(b"\r\n", b"\n")
        written, outside = _written(source, package, Path(path).stem)
        for each in written:
            (methods if each.cls else functions)[each.name.encode()].append(each)
            if not each.beside and each.is_step():
                steps.append(each)
            elif not each.beside and each.hotness[0] and each.name.startswith("__"):
                todo.append(each)  # Python itself calls it
        if written and not written[0].beside:
            spoken |= _words(_IMPORTED.sub(b"", outside)) | set(_KEPT.findall(source))
    if not steps:
        return None
    found: tuple[set[bytes], set[bytes]] = (set(), set())
    for each in steps:
        found[bool(each.cls)].add(each.name.encode())
    todo += steps
    while spoken or todo:
        if todo:
            spoken |= todo.pop().words()
        for word in spoken:
            name = word.lstrip(b".")
            if name in functions and name not in found[0]:
                found[0].add(name)
                todo += (each for each in functions[name] if each.hotness[0])
            if name is not word and name in methods and name not in found[1]:
                found[1].add(name)
                todo += (each for each in methods[name] if each.hotness[0])
        spoken.clear()
    return Reach(*(frozenset(name.decode("utf-8", "replace") for name in names) for names in found))


def _written(source: bytes, package: Sequence[str], stem: str) -> tuple[list[_Written], bytes]:
    """The functions and methods of a file, without those inside of others, and the text outside of them."""
    found: list[tuple[int, int, int, str, str]] = []
    open_: list[tuple[int, bytes, str]] = []  # what the line at hand stands in: indentation, kind, name
    members: dict[str, set[str]] = defaultdict(set)
    ends: dict[int, int] = {}
    waiting: list[tuple[int, int]] = []  # indentation and index of functions whose end is not known
    for match in _DEFINED.finditer(source):
        deep = len(match[1].expandtabs())
        while waiting and waiting[-1][0] >= deep:
            ends[waiting.pop()[1]] = match.start()
        while open_ and open_[-1][0] >= deep:
            open_.pop()
        name = match[3].decode()
        inside = any(kind == b"def" for _, kind, _ in open_)
        cls = open_[-1][2] if open_ else ""
        open_.append((deep, match[2], name))
        if match[2] == b"def" and not inside:
            waiting.append((deep, len(found)))
            members[cls].add(name)
            found.append((match.start(), match.end(), 0, name, cls))
    outside, last, written = [], 0, []
    for index, (start, begin, _, name, cls) in enumerate(found):
        end = ends.get(index, len(source))
        outside.append(source[last:start])
        last = end
        beside = bool(by_place(package, stem, name))
        hotness = by_name(name, cls, members[cls] if cls else ())
        written.append(_Written(name, cls, source, begin, end, hotness, beside))
    outside.append(source[last:])
    return written, b"\n".join(outside)
