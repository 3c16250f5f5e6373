"""What a training loop at the top level of a file calls in others: a script has no function that holds it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from syncscope.heat import loops
from syncscope.heat.called_in_steps import Calls
from syncscope.heat.parsed_text import tree_of
from syncscope.project.outline import FunctionText

_PASS = re.compile(rb"\.(?:manual_)?backward\(")
_TOP = re.compile(rb"^(?![ \t#)\]}\n])[^\n]*", re.MULTILINE)
_DEFINES = re.compile(rb"def |class |async def |@")


def called_at_top(calls: Calls, sources: Mapping[str, bytes], paths: Iterable[str]) -> list[FunctionText]:
    """The functions that run seldom by what they are called, and that such loops call."""
    found: list[FunctionText] = []
    for path in paths:
        source = sources[path]
        if not _passes_at_top(source):
            continue
        tree = tree_of(source)
        top = loops.at_top(tree) if tree is not None else None
        if top is not None:
            found += calls.within(
                top, source, FunctionText("", "", set(), path, source, 0, 0, len(source)), calls.seldom
            )
    return found


def _passes_at_top(source: bytes) -> bool:
    """Whether a backward pass stands in no function of a file."""
    found = _PASS.search(source)
    if found is None:
        return False
    heads = [*_TOP.finditer(source)]
    for each in _PASS.finditer(source):
        head = next((one for one in reversed(heads) if one.start() <= each.start()), None)
        if head is not None and _DEFINES.match(head[0]) is None:
            return True
    return False
