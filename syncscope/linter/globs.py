"""Patterns as git reads those of a .gitignore, matched in time that grows with pattern times path, whatever both are.

git's own `wildmatch` and expressions translated from patterns go back to every `*` in turn: twenty of them never end. What
stands between two wildcards has a fixed length, so the first place where it fits is as good as any: nothing is gone back to.
Semantics: https://git-scm.com/docs/gitignore, and git's dir.c and wildmatch.c where the page is silent. Like there, bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

CLASSES: dict[bytes, Callable[[int], bool]] = {
    b"alnum": lambda c: chr(c).isalnum(),
    b"alpha": lambda c: chr(c).isalpha(),
    b"blank": lambda c: c in b" \t",
    b"cntrl": lambda c: c < 32 or c == 127,
    b"digit": lambda c: chr(c).isdigit(),
    b"graph": lambda c: 32 < c < 127,
    b"lower": lambda c: chr(c).islower(),
    b"print": lambda c: 32 <= c < 127,
    b"punct": lambda c: 32 < c < 127 and not chr(c).isalnum(),
    b"space": lambda c: c in b" \t\n\r",
    b"upper": lambda c: chr(c).isupper(),
    b"xdigit": lambda c: c in b"0123456789abcdefABCDEF",
}
ANY = frozenset(range(1, 256)) - frozenset(b"/")
SPECIAL = re.compile(rb"[*?\[\\]")

Piece = bytes | tuple[frozenset[int], ...]  # so many bytes, each of them known or one of these
Segment = tuple[Piece, ...]  # pieces of a name, between any two of which a `*` stands
Group = tuple[Segment, ...]  # names in a row, between any two of which a `**` stands


@dataclass(frozen=True, slots=True)
class Pattern:
    """A line of a .gitignore: what it matches, and whether that is kept (`!`) or left out."""

    keeps: bool
    folders_only: bool
    of_names: bool  # it holds no slash: the last part of a path is looked at, wherever it lies
    prefix: bytes  # text before the first wildcard
    groups: tuple[Group, ...]  # after it

    def matches(self, path: bytes, is_folder: bool) -> bool:
        """Whether it speaks of this path, relative to the folder of the pattern and without a slash at either end."""
        if self.folders_only and not is_folder:
            return False
        text = path[path.rfind(b"/") + 1 :] if self.of_names else path
        if not text.startswith(self.prefix):
            return False
        rest = text[len(self.prefix) :]
        return fits(self.groups, rest.split(b"/"), _find_group)


def pattern(line: bytes) -> Pattern | None:
    """The pattern of a line; None where it is none, or one that nothing can match: an empty one, a lone backslash at its end, a
    bracket that is not closed."""
    text = line
    keeps = text.startswith(b"!")
    text = text[keeps:]
    folders_only = text.endswith(b"/")
    text = text.removesuffix(b"/")
    of_names = b"/" not in text
    text = text.removeprefix(b"/")
    if not text:
        return None
    special = SPECIAL.search(text)
    prefix = text[: special.start() if special else len(text)]
    groups = _groups(text[len(prefix) :], not of_names)
    return None if groups is None else Pattern(keeps, folders_only, of_names, prefix, groups)


def patterns(text: bytes) -> list[Pattern]:
    """Those of a .gitignore."""
    lines = text.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    found = (pattern(_trimmed(line.removesuffix(b"\r"))) for line in lines if not line.startswith(b"#"))
    return [one for one in found if one]


def _trimmed(line: bytes) -> bytes:
    """Without spaces at the end, but for one after a backslash."""
    short = line.rstrip(b" ")
    if len(short) < len(line) and (len(short) - len(short.rstrip(b"\\"))) % 2:
        short += b" "
    return short


def _groups(text: bytes, has_slash: bool) -> tuple[Group, ...] | None:
    """What comes after the prefix, in groups of names."""
    groups: list[list[Segment]] = [[]]
    segment: list[list[frozenset[int]]] = [[]]
    at, length = 0, len(text)
    while at < length:
        match text[at : at + 1]:
            case b"*":
                end = at + 1
                while text[end : end + 1] == b"*":
                    end += 1
                after = text[end : end + 2]
                whole = has_slash and end - at > 1 and text[max(0, at - 1) : at] in (b"", b"/")
                if whole and (not after or after[:1] == b"/" or after == b"\\/"):
                    if groups[-1] or len(groups) == 1:  # many in a row are one
                        groups.append([])
                    if after[:1] != b"/":  # at least one name
                        groups[-1].append((b"", b""))
                    if not after:
                        return _joined(groups)
                    end += 1 if after[:1] == b"/" else 2
                else:
                    segment.append([])
                at = end
                continue
            case b"/":
                groups[-1].append(_segment(segment))
                segment = [[]]
            case b"?":
                segment[-1].append(ANY)
            case b"[":
                found = _bracket(text, at)
                if found is None:
                    return None
                one, at = found
                segment[-1].append(one)
            case b"\\":
                at += 1
                if at == length:
                    return None
                if text[at] == ord("/"):
                    continue
                segment[-1].append(frozenset(text[at : at + 1]))
            case byte:
                segment[-1].append(frozenset(byte))
        at += 1
    groups[-1].append(_segment(segment))
    return _joined(groups)


def _joined(groups: list[list[Segment]]) -> tuple[Group, ...]:
    return tuple(map(tuple, groups))


def _segment(pieces: list[list[frozenset[int]]]) -> Segment:
    return tuple(
        bytes(next(iter(unit)) for unit in piece) if all(len(unit) == 1 for unit in piece) else tuple(piece)
        for piece in pieces
    )


def _bracket(text: bytes, at: int) -> tuple[frozenset[int], int] | None:
    """The bytes that `[...]` stands for, and where its `]` is."""
    at += 1
    negated = text[at : at + 1] in (b"!", b"^")
    at += negated
    found: set[int] = set()
    before, first = 0, True
    while first or text[at : at + 1] != b"]":
        first = False
        byte = text[at : at + 1]
        if byte == b"\\":
            at += 1
            byte = text[at : at + 1]
            found.update(byte)
        elif byte == b"-" and before and text[at + 1 : at + 2] not in (b"", b"]"):
            at += 1
            if text[at : at + 1] == b"\\":
                at += 1
            found.update(range(before, text[at] + 1) if at < len(text) else ())
            before, byte = 0, text[at : at + 1]
            at += 1
            if not byte:
                return None
            continue
        elif byte == b"[" and text[at + 1 : at + 2] == b":":
            end = text.find(b"]", at + 2)
            if end < 0:
                return None
            if end > at + 2 and text[end - 1 : end] == b":":
                holds = CLASSES.get(text[at + 2 : end - 1])
                if holds is None:
                    return None
                found.update(filter(holds, range(128)))
                before, at = 0, end + 1
                continue
            found.update(byte)
        else:
            found.update(byte)
        if not byte:
            return None
        before = byte[0]
        at += 1
    return (ANY - found if negated else ANY & found), at


def fits(parts: Sequence[Any], text: Any, find: Callable[[Any, Any, int, int], int]) -> bool:
    """Whether the text is these parts in this order, with anything between one and the next.

    `find` gives the first place of a part within a range of the text, or -1.
    """
    first, last, end = parts[0], parts[-1], len(text)
    if len(parts) == 1:
        return len(first) == end and find(first, text, 0, end) == 0
    start, end = len(first), end - len(last)
    if start > end or find(first, text, 0, start) < 0 or find(last, text, end, len(text)) < 0:
        return False
    for part in parts[1:-1]:
        found = find(part, text, start, end)
        if found < 0:
            return False
        start = found + len(part)
    return True


def _find_group(group: Group, names: Sequence[bytes], start: int, end: int) -> int:
    for at in range(start, end - len(group) + 1):
        if all(fits(segment, name, _find_piece) for segment, name in zip(group, names[at:], strict=False)):
            return at
    return -1


def _find_piece(piece: Piece, name: bytes, start: int, end: int) -> int:
    if isinstance(piece, bytes):
        return name.find(piece, start, end)
    for at in range(start, end - len(piece) + 1):
        if all(byte in unit for unit, byte in zip(piece, name[at:], strict=False)):
            return at
    return -1
