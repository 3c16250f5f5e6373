"""What a value is used for says what it is: one scan over the whole text, far cheaper than a walk over its tree."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from syncscope.project import conventions
from syncscope.project.parsed import Parsed
from syncscope.tensors.torch.signatures import ARRAY_LIKE, TAKE_OTHERS, TOLD_BY_CALL, TORCH_ONLY

_INDEXED = re.compile(r"\[\s*(?::|\.\.\.|None)\s*,")
_FIRST = re.compile(r"\s*+(?:-|[\d.]++\s*+[-+*/]\s*+)?([A-Za-z_][\w.]*+)\s*+(?:(?:\*\*|[-+*/])\s*+[\d.]++\s*+)?[,)]")
_BACKWARD = re.compile(r"\s*(?:\)|retain_graph|gradient|create_graph)")
# `(a[1:] > b).all()`: of what Python compares, only arrays give something that has methods. It is looked for by its end: most
# brackets hold no comparison.
_ASKED_OF_ALL = re.compile(r"\)\.(?:all|any|sum|mean|float|nonzero|to|cpu)\(")
_COMPARED = re.compile(
    r"\(\s*+([A-Za-z_][\w.]*+)\s*+(?:\[[^\[\]()]*+\]\s*+)?(?:[<>]=?|[=!]=)[^()]*+\)\.(?:all|any|sum|mean|float|nonzero|to|cpu)\("
)
_TO_HOST = (
    *(f").{word}(" for word in "numpy tolist item detach clone squeeze unsqueeze view reshape flatten argmax".split()),
    ").data.",
)  # of what `cpu()` gives, which a module is not asked for
_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_."
_LONGEST = 1000  # characters of a name with its points
_SPACES = ("torch", "F", "functional", "linalg", "special", "fft")
_ENDINGS = frozenset(space[-1] for space in _SPACES)
_CALLED = ("cpu", "backward", "exp")


def _any_of(words: Iterable[str]) -> str:
    """A pattern of any of these words; those of one letter behind it, so that one look tells most words from all of them."""
    by_letter = groupby(sorted(words), itemgetter(0))
    return "|".join(f"{letter}(?:{'|'.join(word[1:] for word in same)})" for letter, same in by_letter)


_SAYS = _any_of({*TORCH_ONLY, *ARRAY_LIKE, *_CALLED})
_BEHIND_SPACE = rf"(?<=[{''.join(sorted(_ENDINGS))}]\.)([A-Za-z]\w*+)(?=\()"
_ATTRIBUTE = re.compile(rf"\.(?:({_SAYS})(?!\w)|{_BEHIND_SPACE})(\(?)")  # nine in ten are neither


class Usage:
    """Names (and dotted names) by the lines where they are used as only a tensor, or only an array, can be."""

    __slots__ = ("_others", "_rows", "_text", "alone")

    def __init__(self, text: str) -> None:
        # Where no other kind of array is imported, what only arrays have only tensors have.
        self.alone = not any(imports.search(text) for imports in conventions.OTHER_ARRAY_IMPORTS)
        self._text = text
        self._others: list[int] | None = None  # lines that name another kind of array
        only: list[tuple[int, str]] = []  # by what tensors alone have
        shared: list[tuple[int, str]] = []  # by what all arrays have
        lines = _Lines(text)
        for at, name, sure in _by_attribute(text):
            (only if sure else shared).append((lines.of(at), name))
        for by in (_by_index, _by_comparison):
            lines = _Lines(text)
            shared += [(lines.of(at), name) for at, name in by(text) if name and name not in conventions.NOT_TENSORS]
        self._rows: tuple[tuple[int, list[tuple[int, str]]], ...] = (
            ((2, sorted(only + shared)),) if self.alone else ((1, sorted(shared)), (2, sorted(only)))
        )

    def alone_between(self, first: int, last: int) -> bool:
        """Whether no other kind of array is named in these lines."""
        if self.alone:
            return True
        if self._others is None:
            starts = sorted(m.start() for each in conventions.OTHER_ARRAYS for m in each.finditer(self._text))
            lines = _Lines(self._text)
            self._others = [lines.of(start) for start in starts]
        at = bisect_left(self._others, first)
        return at == len(self._others) or self._others[at] > last

    def between(self, first: int, last: int) -> dict[str, int]:
        """Names used like a tensor in these lines, by how much that says (1: numpy has it too, 2: only torch)."""
        found: dict[str, int] = {}
        for weight, rows in self._rows:
            for row in range(bisect_left(rows, (first, "")), len(rows)):
                line, name = rows[row]
                if line > last:
                    break
                found[name] = weight
        return found


def usage_of(parsed: Parsed) -> Usage:
    """How the names of a file are used; many files are imported of which nobody asks that."""
    found: Usage | None = parsed.usage
    if found is None:
        found = parsed.usage = Usage(parsed.source.decode("utf-8", "replace"))
    return found


class _Lines:
    """The numbers of lines, of places in a text that are asked for from its beginning to its end."""

    __slots__ = ("_line", "_seen", "_text")

    def __init__(self, text: str) -> None:
        self._text, self._line, self._seen = text, 1, 0

    def of(self, at: int) -> int:
        """The number of the line of a place."""
        self._line += self._text.count("\n", self._seen, at)
        self._seen = at
        return self._line


def _by_attribute(text: str) -> Iterator[tuple[int, str, bool]]:
    """Names by what they are asked for, or are the first argument of, with where, and whether tensors alone have that."""
    for match in _ATTRIBUTE.finditer(text):
        telling, function, called = match.groups()
        word, at = telling or function, match.start()
        name = _asked_for(text, match, word, called)
        if name and name not in conventions.NOT_TENSORS and "#" not in text[text.rfind("\n", 0, at) + 1 : at]:
            yield at, name, word in TORCH_ONLY or word not in ARRAY_LIKE


def _asked_for(text: str, match: re.Match[str], word: str, called: str) -> str:
    """The name of what has an attribute that tells what it is, or is the first argument of such a function; else ""."""
    at, end = match.span()
    if word in TORCH_ONLY:
        if not called:
            return _before(text, at) if word not in TOLD_BY_CALL else ""
        return "" if word in _OF_OTHERS and not _OF_OTHERS[word](text, at, end) else _before(text, at)
    if word in ARRAY_LIKE:
        return _before(text, at)
    if not called:
        return ""
    if text.endswith(_SPACES, 0, at):
        first = _FIRST.match(text, end) if word not in TAKE_OTHERS and word.islower() else None
        of_torch = text[at - 1] == "F" or "torch" in text[at - 20 : at] or "nn." in text[at - 14 : at]
        return first.group(1) if first is not None and of_torch else ""
    tells = (
        (word == "exp" and text.startswith(")", end))
        or (word == "cpu" and text.startswith(_TO_HOST, end))
        or (word == "backward" and _BACKWARD.match(text, end))
    )
    return _before(text, at) if tells else ""


_TAKES_SIZES = re.compile(
    r".*(?:\b(?:torch|tuple|list|len|Size)\b[\w.]*|\.(?:view|expand|reshape|repeat|new_\w+|resize_|sum_to_size|broadcast_to))"
    r"\((?:[^()]*,)?\s*"
)
_SEVERAL = re.compile(r"[\w\])*]\s*,[^=()]*=\s*$|\*$|\.(?:size\(\)|shape)\s*[=!]=\s*$|\bin\s+$")
_BEFORE_SEVERAL = ("=", "*", "in")
_ONE_OF_THEM = re.compile(r"\)\s*(?:\[|\.numel\b|[=!]=\s*[\w.]+\.(?:size\(|shape\b))")


def _tells_of_sizes(text: str, at: int, end: int) -> bool:
    """Whether `x.size(...)` is asked for a dimension, or gives several numbers: groups of processes and files have one."""
    if not text.startswith(")", end):
        return True
    if _ONE_OF_THEM.match(text, end):
        return True
    line = text[max(text.rfind("\n", 0, at) + 1, at - _LONGEST // 4) : at]
    before = line[: len(line.rstrip(_NAME))]
    if before.rstrip().endswith(_BEFORE_SEVERAL) and _SEVERAL.search(before) is not None:
        return True
    return _TAKES_SIZES.fullmatch(before) is not None


def _is_asked_nothing(text: str, at: int, end: int) -> bool:
    """Whether `x.t()` is given nothing: what translates has a `t`, too."""
    return text.startswith(")", end)


_OF_OTHERS = {"size": _tells_of_sizes, "t": _is_asked_nothing, "dim": _is_asked_nothing}
"""Methods that tell of a tensor only as they are called of one."""


def _by_index(text: str) -> Iterator[tuple[int, str]]:
    """What is indexed as only an array can be, `x[:, 0]`."""
    for match in _INDEXED.finditer(text):
        yield match.start(), _before(text, match.start())


def _by_comparison(text: str) -> Iterator[tuple[int, str]]:
    """What is compared, where the answer is asked as only an array can be."""
    behind = 0
    for end in _ASKED_OF_ALL.finditer(text):
        start = text.rfind("(", behind, end.start())
        found = _COMPARED.match(text, start) if start >= 0 and text.find(")", start) == end.start() else None
        if found is not None:
            behind = found.end()
            yield found.start(), _before(text, found.end(1))


def _before(text: str, end: int) -> str:
    """The dotted name that ends here; "" when there is none, or when it cannot be a tensor's."""
    near = text[max(end - _LONGEST, 0) : end]
    name = near[len(near.rstrip(_NAME)) :]
    if len(name) == _LONGEST:
        return ""
    start = end - len(name)
    if not name or not (name[0].isalpha() or name[0] == "_") or name.startswith(conventions.NOT_TENSORS_UNDER):
        return ""
    if name.endswith(conventions.NOT_TENSORS_ENDING) or (start and text[start - 1] in ")]"):
        return ""
    return name
