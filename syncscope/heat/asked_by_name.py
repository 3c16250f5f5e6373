"""Functions that call a method whose name they are given: `self.call_hook("masking", ...)` runs the `masking` of each hook."""

from __future__ import annotations

import re
from collections.abc import Iterable

from syncscope.project.outline import FunctionText

# What is looked up under a name is called at once, or is kept for that.
_LOOKED_UP = re.compile(rb"(\w+ = )?\bgetattr\(\s*[^(),\n]+,\s*(\w+)\s*(?:,[^()\n]*)?\)(\()?")
_HEAD = re.compile(rb"\A[ \t]*\(\s*(?:self|cls)?\s*,?\s*(\w+)")


def asking(functions: Iterable[FunctionText]) -> re.Pattern[bytes] | None:
    """What finds the names that are handed to such functions, and the functions' own before them; None where there are none."""
    found = {each.name.encode() for each in functions if b"getattr(" in each.text() and _calls_what_it_is_named(each)}
    return re.compile(rb"\b(%b)\(\s*[\"'](\w+)[\"']" % b"|".join(sorted(found))) if found else None


def _calls_what_it_is_named(function: FunctionText) -> bool:
    """Whether a function calls what an object has under its first argument."""
    text = function.text()
    head = _HEAD.match(text)
    if head is None or function.name.startswith("__"):
        return False
    for kept, name, called in _LOOKED_UP.findall(text):
        if name == head[1] and (called or (kept and re.search(rb"(?<![\w.])%b\(" % kept[:-3], text))):
            return True
    return False
