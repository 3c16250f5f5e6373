"""What runs in the steps of a project: the functions that a step speaks of, itself or through others, by name.

A project is gone through as text, which costs a twentieth of parsing it. A name stands for all functions, or all methods, that
have it: what is said to be reached may not be, what is said not to be is spoken of by nothing that trains.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from syncscope.files import regular
from syncscope.tensors import conventions
from syncscope.tensors.hotness_by_name import MAYBE, by_name, by_place

_DEFINED = re.compile(rb"\n([ \t]*)(?:async )?(def|class) (\w+)")
_IMPORTED = re.compile(rb"^(?:from|import)\b[^\n(]*(?:\([^)]*\))?", re.MULTILINE)
# A function kept to be called later: `self.prepare = prepare`, `partial(prepare, cutoff=5)`.
_KEPT = re.compile(rb"(?:\.\w+ = |partial\(\s*)(?:\w+\.)*(\w+)[ \t]*[,)\n]")
_WORDS = bytes(c if chr(c).isalnum() or c in b"_." or c > 127 else ord(" ") for c in range(256))
_ENTRANCES = frozenset(("bin", "cli", "scripts", "tools"))  # where programs stand that train


@dataclass(frozen=True, slots=True)
class Reach:
    """The names of what runs in steps: functions, and methods with a point before them."""

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

    def words(self) -> set[bytes]:
        """What it speaks of: names, and attributes with their point."""
        return _words(self.source[self.begin : self.end])


def _words(text: bytes) -> set[bytes]:
    plain = b" ".join(text.split(b'"""')[::2])
    words = set(plain.translate(_WORDS).replace(b".", b" .").split())
    return words | {word[1:] for word in words if word.startswith(b".")}  # `ops.sized` speaks of a function, too


def reach(root: Path, paths: Iterable[str]) -> Reach | None:
    """What the steps of these files reach; None where they hold no step."""
    defined: dict[bytes, list[_Written]] = defaultdict(list)
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
        beside = bool(by_place(package, Path(path).stem, "forward"))
        written, outside = _written(source)
        for each in written:
            defined[each.word].append(each)
            if not beside and each.is_step():
                steps.append(each)
            elif not beside and each.name.startswith("__") and each.goes_on():
                todo.append(each)  # Python itself calls it
        if not beside:
            spoken |= _words(_IMPORTED.sub(b"", outside)) | set(_KEPT.findall(source))
    if not steps:
        return None
    reached = {each.word for each in steps}
    waiting = defined.keys() - reached
    todo += steps
    while todo or spoken:
        spoken |= todo.pop().words() if todo else set()
        for name in spoken & waiting:
            reached.add(name)
            todo += (each for each in defined[name] if each.goes_on())
        waiting -= reached
        spoken = set()
    return Reach(frozenset(word.decode() for word in reached))


def _written(source: bytes) -> tuple[list[_Written], bytes]:
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
        written.append(_Written(name, cls, members[cls] if cls else set(), source, begin, end))
    outside.append(source[last:])
    return written, b"\n".join(outside)
