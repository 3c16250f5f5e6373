"""What stands at the top of a file, as text: its functions and classes, and the lines between them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_HEAD = re.compile(rb"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)", re.MULTILINE)
_END = re.compile(rb"^(?=[^\s#)\]}])", re.MULTILINE)


class Definition(NamedTuple):
    """A function or a class with all of its text, and where in its file that begins."""

    name: bytes
    start: int
    text: bytes


class TopLevel(NamedTuple):
    """The definitions of a file, in order, and what is none of them."""

    definitions: tuple[Definition, ...]
    between: bytes

    @property
    def names(self) -> set[bytes]:
        """What is defined."""
        return {each.name for each in self.definitions}


@lru_cache(maxsize=64)  # who asks for one name of a file asks for others
def top_level(source: bytes) -> TopLevel:
    """What a file defines at its top."""
    found, between, last = [], [], 0
    for head in _HEAD.finditer(source):
        end = _END.search(source, head.end())
        stop = end.start() if end is not None else len(source)
        between.append(source[last : head.start()])
        found.append(Definition(head[1], head.start(), source[head.start() : stop]))
        last = stop
    return TopLevel(tuple(found), b"\n".join([*between, source[last:]]))
