"""Which findings were there before: each is known by the function that it stands in, and by what waits there.

The ways below are asked one after the other, and what is known so often is known no more often: a wait that is copied is new
once. A function that is no longer where it was may have moved, to another file or under another name; one that is still there
has not. So a wait that leaves it and comes in another is new, but where it was taken out into one of its own that it calls.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Protocol

from syncscope.files import regular
from syncscope.linter.defined import Defined, defined, own_name
from syncscope.linter.source import SourceFile
from syncscope.model.finding import Finding

Found = tuple[SourceFile, Finding]


class KnownFinding(NamedTuple):
    """A known finding: its file, relative to the folder of those who know it, the function around it (None where that is not
    known), the rule, the hashes of `Identity`, and the text of its line. Earlier forms have no rule, and one hash of their own
    as `wait`."""

    path: str
    function: str | None
    rule: str
    wait: str
    text: str = ""
    value: str = ""
    body: str = ""
    leaves: str = ""
    code: str = ""

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


class Before(Protocol):
    """Who knows what was found before."""

    @property
    def known(self) -> Counter[KnownFinding]:
        """How often each was found."""

    @property
    def folder(self) -> str:
        """The folder that paths of the known are relative to."""

    def functions_of(self, path: str) -> Collection[str]:
        """The functions that a file had, "" among them where it had code in none."""

    def as_it_stood(self, path: str) -> Defined | None:
        """What a file defined; None where its text is not at hand."""

    def is_added(self, source: SourceFile, finding: Finding) -> bool:
        """Whether the line of a finding was not there before, as far as that is known."""


Key = Callable[[KnownFinding], Hashable]


@dataclass(frozen=True, slots=True)
class _Way:
    """A way of knowing again: what must be equal, None where that is nothing; of the known it may be one of `several`. Which of
    the known, which of what is found now, and whether both, may be meant."""

    key: Key
    several: Callable[[KnownFinding], Iterable[Hashable]] | None = None
    known: Callable[[KnownFinding], bool] = lambda _: True
    now: Callable[[KnownFinding], bool] = lambda _: True
    both: Callable[[KnownFinding, KnownFinding], bool] = lambda _, __: True

    def keys(self, entry: KnownFinding) -> Iterable[Hashable]:
        """What of a known finding may be equal."""
        return (self.key(entry),) if self.several is None else self.several(entry)


def recall(before: Before, found: Sequence[tuple[Found, Sequence[KnownFinding]]]) -> Recalled:
    """Which of these findings are known; each is given with what it would be known as. Of equals those are new whose lines
    were added."""
    left, moved = Counter(before.known), list[tuple[KnownFinding, KnownFinding, Found]]()
    around = Counter((finding.place.path, finding.function) for (_, finding), _ in found)

    def is_later(each: tuple[Found, Sequence[KnownFinding]]) -> bool:
        source, finding = each[0]
        return around[finding.place.path, finding.function] > 1 and before.is_added(source, finding)

    todo = sorted(found, key=is_later)
    for way in _ways(before):
        if not todo or not left.total():
            break
        wanted = {key for _, its in todo for one in its if (key := way.key(one)) is not None}
        at_hand: dict[Hashable, list[KnownFinding]] = {}
        for entry in reversed([*+left]):  # the first of them is the next to be taken
            for key in way.keys(entry):
                if key in wanted and way.known(entry):
                    at_hand.setdefault(key, []).append(entry)
        rest = []
        for each, its in todo:
            asked = ((now, entry) for now in its if way.now(now) for entry in _open(at_hand.get(way.key(now)), left))
            now, same = next((pair for pair in asked if way.both(*pair[::-1])), (None, None))
            if now is None or same is None:
                rest.append((each, its))
                continue
            left[same] -= 1
            if same[:3] != now[:3]:
                moved.append((same, now, each))
        todo = rest
    new = {id(finding) for (_, finding), _ in todo}
    return Recalled([each for each, _ in found if id(each[1]) in new], +left, moved)


def _open(at_hand: list[KnownFinding] | None, left: Counter[KnownFinding]) -> Iterator[KnownFinding]:
    """Those of which some are left; the last that are not are forgotten, so that nobody goes by them again."""
    while at_hand and not left[at_hand[-1]]:
        at_hand.pop()
    yield from (entry for entry in reversed(at_hand or ()) if left[entry])


def _ways(before: Before) -> Sequence[_Way]:
    """The ways of knowing again, the surest first."""
    defines = cache(lambda path: _defined(os.path.join(before.folder, path)))
    had, stood = cache(before.functions_of), cache(before.as_it_stood)

    def is_gone(entry: KnownFinding) -> bool:
        return defines(entry.path) is None

    def has_left(entry: KnownFinding) -> bool:
        its = defines(entry.path)
        return its is None or bool(entry.function and not its.has(entry.function))

    held = Counter[Hashable]()
    for entry, count in before.known.items():
        held[entry[:4]] += count

    def has_fewer(entry: KnownFinding) -> bool:
        """Whether its function waits so less often than it did: one that was not linted may do so as ever."""
        its = defines(entry.path)
        return its is None or its.holds(entry.wait, entry.function or "") < held[entry[:4]]

    def has_come(now: KnownFinding) -> bool:
        return now.function is None or now.function not in had(now.path)

    def calls(entry: KnownFinding, now: KnownFinding) -> bool:
        its = defines(entry.path)
        speaks = its is not None and its.speaks_of(entry.function or "", own_name(now.function or ""))
        return speaks and has_fewer(entry)

    def is_renamed(entry: KnownFinding, now: KnownFinding) -> bool:
        then, its = stood(entry.path), defines(now.path)
        if then is None or its is None:
            return False
        return then.is_like(entry.function or "", its, now.function or "")

    def called(entry: KnownFinding, now: KnownFinding) -> bool:
        then = stood(now.path)
        return then is not None and then.speaks_of(now.function or "", own_name(entry.function or ""))

    def moved(key: Key) -> _Way:
        return _Way(key, known=has_left, now=has_come)

    def left_by_fix(entry: KnownFinding) -> Iterable[Hashable]:
        return ((entry.path, entry.function, wait) for wait in entry.leaves.split())

    return (
        _Way(lambda e: (*e[:5], e.code) if e.code else None),
        _Way(lambda e: e[:5]),
        _Way(lambda e: (e.path, e.function, e.rule, e.wait)),
        _Way(lambda e: (e.path, e.function, e.wait)),  # by a rule that had another name
        _Way(lambda e: (e.path, e.function, e.value) if e.value else None),  # in other words
        _Way(lambda e: (e.path, e.function, e.wait), left_by_fix),
        _Way(lambda e: (e.path, e.wait), known=lambda e: e.is_earlier),
        moved(lambda e: (e.path, e.body, e.wait) if e.body else None),  # a function or class that is renamed
        moved(lambda e: (e.function, e.body, e.wait) if e.body else None),
        moved(lambda e: (e.body, e.wait) if e.body else None),
        moved(lambda e: (e.function, e.wait)),  # moved, and edited
        moved(lambda e: (e.function, e.rule, e.value) if e.value else None),
        moved(lambda e: (e.path, own_name(e.function), e.wait) if e.function else None),  # in a renamed class
        _Way(lambda e: (e.path, e.wait), known=has_left, now=has_come, both=is_renamed),  # renamed, and edited
        _Way(lambda e: (e.rule, e.wait) if e.rule else None, now=has_come, both=calls),  # taken out into one of its own
        _Way(lambda e: (e.rule, e.wait) if e.rule else None, known=has_left, both=called),  # put in where it was called
        _Way(lambda e: e.wait, known=lambda e: e.is_earlier and is_gone(e)),
    )


def line_of(source: SourceFile, finding: Finding) -> str:
    """The text of the line that a finding begins in."""
    return source.code[source.starts[finding.place.line - 1] :].split(b"\n", 1)[0].decode().strip()


def _defined(path: str) -> Defined | None:
    """What a file on disk defines; None where it is gone."""
    with contextlib.suppress(FileNotFoundError):
        return defined(path, regular(path))
    return None
