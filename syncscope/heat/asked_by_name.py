"""Functions that call a method whose name they are given: `self.call_hook("masking", ...)` runs the `masking` of each hook."""

from __future__ import annotations

import re
from collections.abc import Iterable

from syncscope.project.outline import FunctionText

# What is looked up under a name is called at once, or is kept for that.
_LOOKED_UP = re.compile(rb"getattr(?<!\wgetattr)\(\s*[^(),\n]+,\s*(\w+)\s*(?:,[^()\n]*)?\)(\()?")
_KEPT = re.compile(rb"(\w+) = \Z")
_LONGEST = 80  # bytes of a name
_HEAD = re.compile(rb"\A[ \t]*\(\s*(?:self|cls)?\s*,?\s*(\w+)")


def asking(functions: Iterable[FunctionText]) -> re.Pattern[bytes] | None:
    """What finds the names that are handed to such functions, and the functions' own before them; None where there are none."""
    found = {each.name.encode() for each in functions if b"getattr(" in each.text() and _calls_what_it_is_named(each)}
    names = b"|".join(
        rb"%b(?<!\w%b)" % (name, name) for name in sorted(found)
    )  # no `\b` before, which is tried everywhere
    return re.compile(rb"(%b)\(\s*[\"'](\w+)[\"']" % names) if found else None


def _calls_what_it_is_named(function: FunctionText) -> bool:
    """Whether a function calls what an object has under its first argument."""
    text = function.text()
    head = _HEAD.match(text)
    if head is None or function.name.startswith("__"):
        return False
    for looked_up in _LOOKED_UP.finditer(text):
        if looked_up[1] == head[1]:
            at = looked_up.start()
            kept = _KEPT.search(text[max(at - _LONGEST, 0) : at])
            if looked_up[2] or (kept is not None and re.search(rb"(?<![\w.])%b\(" % kept[1], text)):
                return True
    return False
