"""What fills one row of a memory, and goes on to the next: once a step of whoever collects what is to be learned from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from syncscope.project.outline import FunctionText

_ROW = re.compile(
    rb"^[ \t]+self\.\w+\[self\.(\w+)(?:[ \t]*\+[ \t]*1)?(?:,[^\]\n]*)?\](?:[ \t]*=(?!=)|\.copy_\()", re.MULTILINE
)
_NEXT = rb"^[ \t]+self\.%b[ \t]*(?:\+=[ \t]*1\b|=[ \t]*\(?self\.%b[ \t]*\+[ \t]*1\b)"
_SELDOM = re.compile(rb"epoch|episode|iteration|round|run|trial|fold")  # what is noted once in many steps


def filling(functions: Iterable[FunctionText]) -> Iterator[FunctionText]:
    """The methods that do so: `self.rewards[self.at] = reward` and `self.at += 1`."""
    for each in functions:
        if not each.cls or each.source.find(b"[self.", each.begin, each.end) < 0:
            continue  # most of them, and nothing is copied to see it
        text = each.text()
        rows = {at for at in _ROW.findall(text) if not _SELDOM.search(at)}
        if any(re.search(_NEXT % (at, at), text, re.MULTILINE) for at in rows):
            yield each
