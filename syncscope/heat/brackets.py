"""What stands in a bracket, in the text of a file that is not parsed."""

from __future__ import annotations

import re

_BRACKETS = re.compile(rb"[\[\](){}]")


def up_to_closing(text: bytes, begin: int, longest: int) -> bytes:
    """What stands in the bracket that was opened before `begin`: at most the `longest` bytes of it that are gone through."""
    end = begin + longest
    deep = 1
    for match in _BRACKETS.finditer(text, begin, end):
        deep += 1 if match[0] in b"[({" else -1
        if not deep:
            return text[begin : match.start()]
    return text[begin:end]
