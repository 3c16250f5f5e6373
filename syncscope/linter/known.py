"""Which findings were there before: each is known by the function that it stands in, and by what waits there.

The ways below are asked one after the other, and what is known so often is known no more often: a wait that is copied is new
once. A function that is no longer where it was may have moved, to another file or under another name; one that is still there
has not, so that a wait that leaves it and comes in another is new.
"""

from __future__ import annotations

import ast
import contextlib
import os
import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from syncscope.files import regular
from syncscope.linter.engine import dotted
from syncscope.linter.notebooks import source_of
from syncscope.linter.source import CFile, SourceFile
from syncscope.model.finding import Finding
from syncscope.project.syntax import statements

Found = tuple[SourceFile, Finding]
WORD = re.compile(rb"\w+")


class KnownFinding(NamedTuple):
    """A known finding: its file, relative to the folder of those who know it, the function around it (None where that is not
    known), the rule, and the hashes of `Identity`. Earlier forms have no rule, and one hash of their own as `wait`."""

    path: str
    function: str | None
    rule: str
    wait: str
    value: str = ""
    body: str = ""

    @property
    def is_earlier(self) -> bool:
        """Whether it is of a form that knows a statement and no more."""
        return not self.rule


@dataclass(frozen=True, slots=True)
class Recalled:
    """What is `new`, what of the known is none of the findings (`left`), and what of it stands elsewhere now, and where."""

    new: list[Found]
    left: Counter[KnownFinding]
    moved: list[tuple[KnownFinding, KnownFinding, Found]]


@dataclass(frozen=True, slots=True)
class _Way:
    """A way of knowing again: which of the known may be meant, and what must be equal, None where that is nothing."""

    may_be: Callable[[KnownFinding], bool]
    key: Callable[[KnownFinding], Hashable]


def recall(
    known: Counter[KnownFinding], found: Sequence[tuple[Found, Sequence[KnownFinding]]], folder: str
) -> Recalled:
    """Which of these findings are known; each is given with what it would be known as, `folder` is that of the paths."""
    left, moved = Counter(known), list[tuple[KnownFinding, KnownFinding, Found]]()
    todo = list(found)
    for way in _ways(folder):
        if not todo or not left.total():
            break
        at_hand: dict[Hashable, list[KnownFinding]] = {}
        wanted = {key for _, its in todo for one in its if (key := way.key(one)) is not None}
        for entry in left.elements():
            if (key := way.key(entry)) in wanted and way.may_be(entry):
                at_hand.setdefault(key, []).append(entry)
        rest = []
        for each, its in todo:
            same = next(((one, there) for one in its if (there := at_hand.get(way.key(one)))), None)
            if same is None:
                rest.append((each, its))
                continue
            now, entry = same[0], same[1].pop(0)
            left[entry] -= 1
            if entry[:3] != now[:3]:
                moved.append((entry, now, each))
        todo = rest
    return Recalled([each for each, _ in todo], +left, moved)


def _ways(folder: str) -> Sequence[_Way]:
    """The ways of knowing again, the surest first."""
    defined = cache(lambda path: _defined(os.path.join(folder, path)))

    def is_gone(entry: KnownFinding) -> bool:
        return defined(entry.path) is None

    def has_moved(entry: KnownFinding) -> bool:
        names = defined(entry.path)
        return names is None or bool(
            entry.function and names.isdisjoint((entry.function, f"*{own_name(entry.function)}"))
        )

    def always(_: KnownFinding) -> bool:
        return True

    return (
        _Way(always, lambda e: e[:5]),
        _Way(always, lambda e: (e.path, e.function, e.rule, e.wait)),
        _Way(always, lambda e: (e.path, e.function, e.wait)),  # by a rule that had another name
        _Way(always, lambda e: (e.path, e.function, e.value) if e.value else None),  # in other words
        _Way(lambda e: e.is_earlier, lambda e: (e.path, e.wait)),
        _Way(has_moved, lambda e: (e.path, e.body, e.wait) if e.body else None),  # a function or class that is renamed
        _Way(has_moved, lambda e: (e.function, e.body, e.wait) if e.body else None),
        _Way(has_moved, lambda e: (e.body, e.wait) if e.body else None),
        _Way(has_moved, lambda e: (e.function, e.wait)),  # moved, and edited
        _Way(has_moved, lambda e: (e.function, e.value) if e.value else None),
        _Way(has_moved, lambda e: (e.path, own_name(e.function), e.wait) if e.function else None),  # in a renamed class
        _Way(lambda e: e.is_earlier and is_gone(e), lambda e: e.wait),
    )


def own_name(function: str) -> str:
    """A dotted name without the classes and functions around it."""
    return function.rpartition(".")[2]


def _defined(path: str) -> frozenset[str] | None:
    """The dotted names of the functions of a file, of what is no Python `*` and each of its words; None where it is gone."""
    if not os.path.exists(path):
        return None
    code = b""
    with contextlib.suppress(OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        source = source_of(path, regular(path))
        code = source.code
        if not isinstance(source, CFile):
            return frozenset(dotted(statements(ast.parse(code))).values())
    return frozenset(f"*{word.decode()}" for word in WORD.findall(code))
