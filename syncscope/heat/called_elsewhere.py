"""Which line of another file of the project calls a function, found as text: asked of one finding, never of all."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from syncscope.files import regular
from syncscope.project.folders import files, roots

_TRAINS = b".backward("


class CallElsewhere(NamedTuple):
    """A line of another file that calls a function; where it is not `sure`, it may be another of that name."""

    path: str
    line: int
    sure: bool


def called_elsewhere(path: str, name: str, owner: str) -> CallElsewhere | None:
    """A file and a line that calls a function, or a method of the class `owner`: in a file that trains before another. It is
    sure where no other of its name is defined, or an import of the file names it.
    """
    word, here = re.escape(name.encode()), os.path.abspath(path)
    call = re.compile(rb"(?<=\.)%b\(" % word if owner else rb"(?<!\w)(?<!def )%b\(" % word)
    define = re.compile(rb"^[ \t]*(?:async[ \t]+)?def[ \t]+%b\b" % word, re.MULTILINE)
    named = re.compile(rb"^[ \t]*(?:from|import)\b[^#\n]*\b%b\b" % word, re.MULTILINE)
    root = next(roots(Path(here).parent), None)
    found: list[tuple[bool, bool, str, int]] = []
    defined = 0
    for other in files(root) if root is not None else ():
        try:
            text = regular(other)
        except OSError:
            continue
        if name.encode() not in text:
            continue
        defined += len(define.findall(text))
        at = next((each.start() for each in call.finditer(text) if _is_code(text, each.start())), -1)
        if at >= 0 and os.path.abspath(other) != here:
            line = text.count(b"\n", 0, at) + 1
            found.append((owner != "" or named.search(text) is None, _TRAINS not in text, other, line))
    known = [(defined > 1 and unnamed, aside, file, line) for unnamed, aside, file, line in found]
    if not known:
        return None
    unsure, _, file, line = min(known)
    return CallElsewhere(file, line, not unsure)


def _is_code(text: bytes, at: int) -> bool:
    """Whether no comment begins before a place in its line."""
    return b"#" not in text[text.rfind(b"\n", 0, at) + 1 : at]
