"""What a value is used for says what it is: one scan over the whole text, far cheaper than a walk over its tree."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter

from syncscope.project import conventions
from syncscope.project.parsed import Parsed
from syncscope.tensors.torch.signatures import ARRAY_LIKE, TAKE_OTHERS, TOLD_BY_CALL, TORCH_ONLY

_INDEXED = re.compile(r"\[\s*(?::|\.\.\.|None)\s*,")
_FIRST = re.compile(r"\s*([A-Za-z_][\w.]*)\s*[,)]")
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
        strong: list[tuple[int, str]] = []
        arraylike: list[tuple[int, str]] = strong if self.alone else []
        line, seen = 1, 0
        for match in _ATTRIBUTE.finditer(text):
            telling, function, called = match.groups()
            attribute, at = telling or function, match.start()
            name = ""
            rows = strong
            if attribute in TORCH_ONLY:
                if called or attribute not in TOLD_BY_CALL:
                    name = _before(text, at)
            elif attribute in ARRAY_LIKE:
                name = _before(text, at)
                rows = arraylike
            elif called and text.endswith(_SPACES, 0, at):
                first = (
                    _FIRST.match(text, match.end()) if attribute not in TAKE_OTHERS and attribute.islower() else None
                )
                if first is not None and (
                    text[at - 1] == "F" or "torch" in text[at - 20 : at] or "nn." in text[at - 14 : at]
                ):
                    name = first.group(1)
            elif called and (
                (attribute == "exp" and text.startswith(")", match.end()))
                or (attribute == "cpu" and text.startswith(_TO_HOST, match.end()))
                or (attribute == "backward" and _BACKWARD.match(text, match.end()))
            ):
                name = _before(text, at)
            if name and name not in conventions.NOT_TENSORS and "#" not in text[text.rfind("\n", 0, at) + 1 : at]:
                line += text.count("\n", seen, at)
                seen = at
                rows.append((line, name))
        line, seen = 1, 0
        for match in _INDEXED.finditer(text):
            at = match.start()
            name = _before(text, at)
            if name and name not in conventions.NOT_TENSORS:
                line += text.count("\n", seen, at)
                seen = at
                arraylike.append((line, name))
        line, seen = 1, 0
        behind = 0
        for end in _ASKED_OF_ALL.finditer(text):
            start = text.rfind("(", behind, end.start())
            found = _COMPARED.match(text, start) if start >= 0 and text.find(")", start) == end.start() else None
            if found is None:
                continue
            behind = found.end()
            name = _before(text, found.end(1))
            if name and name not in conventions.NOT_TENSORS:
                line += text.count("\n", seen, found.start())
                seen = found.start()
                arraylike.append((line, name))
        strong.sort()
        self._rows: tuple[tuple[int, list[tuple[int, str]]], ...] = ((2, strong),)
        if not self.alone:
            arraylike.sort()
            self._rows = ((1, arraylike), (2, strong))

    def alone_between(self, first: int, last: int) -> bool:
        """Whether no other kind of array is named in these lines."""
        if self.alone:
            return True
        if self._others is None:
            self._others = []
            line, seen = 1, 0
            for start in sorted(m.start() for each in conventions.OTHER_ARRAYS for m in each.finditer(self._text)):
                line += self._text.count("\n", seen, start)
                seen = start
                self._others.append(line)
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
