"""What runs in the steps of a project: the functions that a step speaks of, itself or through others, by name.

A project is gone through as text, which costs a fifth of parsing it. A name stands for all functions, or all methods, that
have it: what is said to be reached may not be, what is said not to be is spoken of by nothing that trains.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from syncscope.files import regular
from syncscope.tensors import conventions
from syncscope.tensors.hotness_by_name import MAYBE, by_name, by_place

_DEFINED = re.compile(rb"def (\w+)"), re.compile(rb"class (\w+)")  # apart, for each is then looked for as a word
_IMPORTED = re.compile(rb"^(?:from|import)\b[^\n(]*(?:\([^)]*\))?", re.MULTILINE)
_ASSIGNED = re.compile(rb"\.\w+ = (?:\w+\.)*(\w+)[ \t]*[,)\n]")
_PARTIAL = re.compile(rb"partial\(\s*(?:\w+\.)*(\w+)[ \t]*[,)\n]")
_WORDS = bytes(c if chr(c).isalnum() or c in b"_." or c > 127 else ord(" ") for c in range(256))
_PINS = b"pin_memory"
_ENTRANCES = frozenset(("bin", "cli", "scripts", "tools"))  # where programs stand that train


@dataclass(frozen=True, slots=True)
class Reach:
    """The names of what runs in steps: functions, methods with a point before them, `pin_memory` where a file speaks of it."""

    names: frozenset[str]

    def holds(self, name: str, method: bool) -> bool:
        """Whether one of this name is reached; what Python calls by itself is."""
        return name.startswith("__") or (f".{name}" if method else name) in self.names


@dataclass(frozen=True, slots=True)
class _Written:
    """A function as text."""

    name: str
    cls: str
    methods: set[str]  # of the class
    source: bytes
    begin: int
    end: int

    @property
    def word(self) -> bytes:
        """What speaks of it: of a method an attribute of its name, of a function its name."""
        return b"." * bool(self.cls) + self.name.encode()

    def is_step(self) -> bool:
        """Whether it is known to run in every step."""
        if self.source.find(b"backward(", self.begin, self.end) >= 0:
            return True
        if (
            self.name not in conventions.HOT
            and not conventions.is_loss(self.name)
            and not conventions.is_loss(self.cls)
        ):
            return False  # most are not, and the rest would be asked in vain
        hot, why = by_name(self.name, self.cls, self.methods)
        return hot and not why.endswith(MAYBE)

    def goes_on(self) -> bool:
        """Whether what it speaks of runs where it does: all but what is set-up, evaluation and the like."""
        return by_name(self.name, self.cls, self.methods)[0]

    def text(self) -> bytes:
        """Its body."""
        return self.source[self.begin : self.end]


def _words(text: bytes) -> set[bytes]:
    """What a text speaks of: names, and attributes with their point."""
    plain = b" ".join(text.split(b'"""')[::2])
    return set(plain.translate(_WORDS).replace(b".", b" .").split())


def _kept(source: bytes) -> set[bytes]:
    """Functions that are kept to be called later: `self.prepare = prepare`, `partial(prepare, cutoff=5)`."""
    return {*_PARTIAL.findall(source), *_ASSIGNED.findall(source)}


def reach(root: Path, paths: Iterable[str]) -> Reach | None:
    """What the steps of these files reach; None where they hold no step."""
    defined: dict[bytes, list[_Written]] = defaultdict(list)
    steps: list[_Written] = []
    todo: list[_Written] = []
    spoken: set[bytes] = set()  # by files themselves, outside of all functions
    packages: dict[str, list[str]] = {}  # around a folder
    pins = False
    for path in paths:
        try:
            source = regular(path)
        except OSError:
            continue
        if b"torch" not in source and b"backward(" not in source:
            continue
        pins = pins or _PINS in source
        folder, file = os.path.split(path)
        if folder not in packages:
            parts = Path(folder).relative_to(root.parent).parts
            packages[folder] = [each for each in parts if each not in _ENTRANCES]
        source = b"\n" + source.replace(b"\r\n", b"\n")
        beside = bool(by_place(packages[folder], file.removesuffix(".py"), "forward"))
        written, outside = _written(source)
        for each in written:
            defined[each.word].append(each)
            if not beside and each.is_step():
                steps.append(each)
            elif not beside and each.name.startswith("__") and each.goes_on():
                todo.append(each)  # Python itself calls it
        if not beside:
            spoken |= _words(_IMPORTED.sub(b"", outside)) | _kept(source)
    if not steps:
        return None
    reached = {each.word for each in steps}
    waiting = defined.keys() - reached
    as_attribute = {b"." + word: word for word in waiting}  # `ops.sized` speaks of a function, too
    todo += steps
    while todo or spoken:
        spoken |= _words(todo.pop().text()) if todo else set()
        new = (spoken | {as_attribute[word] for word in as_attribute.keys() & spoken}) & waiting
        for name in new:
            todo += (each for each in defined[name] if each.goes_on())
        reached |= new
        waiting -= new
        spoken = set()
    return Reach(frozenset(word.decode() for word in (*reached, *[_PINS] * pins)))


def _written(source: bytes) -> tuple[list[_Written], bytes]:
    """The functions and methods of a file, without those inside of others, and the text outside of them."""
    found: list[tuple[int, int, str, str]] = []
    open_: list[tuple[int, bool, str]] = []  # what the line at hand stands in: indentation, whether a function, name
    members: dict[str, set[str]] = defaultdict(set)
    ends: dict[int, int] = {}
    waiting: list[tuple[int, int]] = []  # indentation and index of functions whose end is not known
    for match in sorted((each for what in _DEFINED for each in what.finditer(source)), key=re.Match.start):
        line = source.rfind(b"\n", 0, match.start())
        before = source[line + 1 : match.start()].removesuffix(b"async ").expandtabs()
        deep = len(before)
        if before.strip(b" "):
            continue  # within a line
        while waiting and waiting[-1][0] >= deep:
            ends[waiting.pop()[1]] = line
        while open_ and open_[-1][0] >= deep:
            open_.pop()
        name = match[1].decode()
        inside = any(function for _, function, _ in open_)
        cls = open_[-1][2] if open_ else ""
        function = match.re is _DEFINED[0]
        open_.append((deep, function, name))
        if function and not inside:
            waiting.append((deep, len(found)))
            members[cls].add(name)
            found.append((line, match.end(), name, cls))
    outside, last, written = [], 0, []
    for index, (start, begin, name, cls) in enumerate(found):
        end = ends.get(index, len(source))
        outside.append(source[last:start])
        last = end
        written.append(_Written(name, cls, members[cls] if cls else set(), source, begin, end))
    outside.append(source[last:])
    return written, b"\n".join(outside)
