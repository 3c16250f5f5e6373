"""Where a file speaks of a backward pass: its own lines, and those that call a function of it which holds one."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import NamedTuple

from syncscope.heat.places import places as words_at
from syncscope.model.source import line_starts
from syncscope.project import conventions
from syncscope.project.syntax import name_of

_STEP_CALLS = (  # apart, for each is then looked for as a word
    re.compile(rb"train(?:ing)?_(?:one_|on_)?(?:step|batch)\("),
    re.compile(rb"optimize_parameters\("),
)
_BACKWARD = re.compile(rb"backward")
_OF_SELF = re.compile(rb"\W?self\.\Z")
_PASS = re.compile(rb"\.(?:manual_)?backward\(")
_HEAD = re.compile(  # no `^`, which is tried everywhere
    rb"\n([ \t]*)(?:async[ \t]+)?(def|class|for|while|if|elif|else|with|try|except|finally|match|case)\b[ \t]*(\w*)"
)


class HoldBackward(NamedTuple):
    """The functions and the methods of a file that hold a backward pass, in no loop of their own: steps, or parts of one."""

    functions: frozenset[str]
    methods: frozenset[str]

    def has(self, name: str, method: bool) -> bool:
        """Whether the function, or the method, of this name is one of them."""
        return name in (self.methods if method else self.functions)

    def holds(self, func: ast.expr) -> bool:
        """Whether a call of this runs one of them: `update(batch)`, `self.update(batch)`."""
        if isinstance(func, ast.Name):
            return func.id in self.functions
        return isinstance(func, ast.Attribute) and func.attr in self.methods and name_of(func.value) == "self"


_TWO = 2
_NONE = HoldBackward(frozenset(), frozenset())


@lru_cache(maxsize=64)
def steps(source: bytes) -> HoldBackward:
    """Those of a file, found in its text."""
    # most files have none: that is seen in a tenth of the time that the pattern takes
    passes = [each.start() for each in _PASS.finditer(source)] if b"backward(" in source else []
    if not passes:
        return _NONE
    functions: set[str] = set()
    methods: set[str] = set()
    heads = [
        (each.start(), len(each[1].expandtabs()), each[2], each[3].decode()) for each in _HEAD.finditer(b"\n" + source)
    ]
    for at in passes:
        line = source.rfind(b"\n", 0, at) + 1
        text = source[line:at].expandtabs()
        deep = len(text) - len(text.lstrip())
        if text.lstrip().startswith(b"#"):
            continue
        around = _around(heads, at, deep)
        if around[:1] and around[0][0] == b"def":
            (methods if [kind for kind, _ in around[1:]] == [b"class"] else functions).add(around[0][1])
    return HoldBackward(frozenset(functions), frozenset(methods))


def _around(heads: list[tuple[int, int, bytes, str]], at: int, deep: int) -> list[tuple[bytes, str]]:
    """The two innermost functions, classes and loops around a place of this indentation, from the inside out."""
    found = []
    for before in range(bisect_left(heads, (at,)) - 1, -1, -1):
        _, indent, kind, name = heads[before]
        if indent < deep:
            deep = indent
            if kind in (b"def", b"class", b"for", b"while"):
                found.append((kind, name))
            if len(found) == _TWO or not deep:
                break
    return found


def calls_one(node: ast.AST, source: bytes) -> bool:
    """Whether this is a call that runs a backward pass: of a loss, or of what is called like a step or is seen to hold one."""
    if not isinstance(node, ast.Call):
        return False
    if getattr(node.func, "attr", "") in ("backward", "manual_backward"):
        return True
    return conventions.STEP_CALL.match(name_of(node.func)) is not None or steps(source).holds(node.func)


@lru_cache(maxsize=64)
def backward_lines(source: bytes) -> tuple[int, ...]:
    """The lines that speak of a backward pass, or call what holds one."""
    if not any(word in source for word in (b"backward(", b"step(", b"batch(", b"optimize_parameters(")):
        return ()  # most files: seen in a tenth of the time that the patterns take
    if b"backward(" not in source and not any(each.search(source) for each in _STEP_CALLS):
        return ()
    spoken_of = (_BACKWARD, *_STEP_CALLS)  # apart, for each is then looked for as a word
    places = {at.start() for each in spoken_of for at in each.finditer(source)}
    own = steps(source)
    if own is not _NONE:
        for name in own.functions | own.methods:
            for at, end in words_at(name.encode(), source):
                if source[end : end + 1] == b"(" and (
                    name in own.functions or _OF_SELF.match(source, max(at - 6, 0), at)
                ):
                    places.add(at)
    starts = line_starts(source)
    return tuple(sorted({bisect_right(starts, at) for at in places}))


def speaks_of_backward(node: ast.stmt, source: bytes) -> bool:
    """Whether a statement holds such a line."""
    lines = backward_lines(source)
    return bisect_right(lines, node.end_lineno or 0) > bisect_left(lines, node.lineno)
