"""Functions that a compiler takes whole, TorchScript or `torch.compile(fullgraph=True)`: there a fix must compile, too.

What is handed to `torch.jit.script` anywhere in the project counts, its tests included, and what that calls. The text is looked
through, not parsed, and names are compared without their modules: one too many costs a fix, one too few a project that no
longer compiles.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from syncscope.files import regular
from syncscope.linter.files import NEVER

MENTION = re.compile(rb"jit\s*\.\s*(?:script|export)|\bscript_method\b|\bscript_if_tracing\b|\bfullgraph\s*=\s*True")
GIVEN = re.compile(rb"(?:\bjit\.script|\bscript_if_tracing)\(\s*([\w.]+)")
GIVEN_WHOLE = re.compile(rb"\bcompile\(\s*([\w.]+)?[^()]*fullgraph\s*=\s*True")
DECORATED = re.compile(
    rb"@[\w.]*(?:jit\.script\w*|jit\.export|script_method|script_if_tracing|compile\([^()]*fullgraph\s*=\s*True[^()]*\))[^\n]*\n"
    rb"(?:[ \t]*@[^\n]*\n)*[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)"
)
BOUND = re.compile(rb"^[ \t]*(?:self\.)?(\w+)[ \t]*=[ \t]*([\w.]+)", re.MULTILINE)
DEFINED = re.compile(rb"\n([ \t]*)(?:async[ \t]+)?(def|class)[ \t]+(\w+)(?:\(([\w., \t]*)\):)?")
CALLED = re.compile(rb"(?<![\w.])((?:\w+\.)?)(\w+)\(")
MOST, LARGEST = 4000, 500_000  # files of a project, bytes of one: what is larger is not looked through
ROOTED = ("pyproject.toml", "setup.py", "setup.cfg", ".git")


class Definition(NamedTuple):
    """A function or a class in the text of a file: what it calls, by name, and whether as `self.name(...)`."""

    cls: bytes  # the class around a method
    is_class: bool
    bases: tuple[bytes, ...]
    text: bytes

    def calls(self) -> Iterable[tuple[bool, bytes]]:
        """Whether it is a method of its own, and the name."""
        return ((owner == b"self.", name) for owner, name in CALLED.findall(self.text))


def is_scripted(name: str, path: str, code: bytes) -> bool:
    """Whether a compiler takes the function of this dotted name, in a file of this content, whole."""
    path = os.path.abspath(path)
    known = of_project(project_of(os.path.dirname(path))) if os.path.exists(path) else frozenset()
    if MENTION.search(code):
        known = followed(known | given(code), index([code]))
    if not known:
        return False
    *above, last = name.encode().split(b".")
    return last in known or bool(above and (above[-1] in known or b"%s.%s" % (above[-1], last) in known))


@cache
def project_of(folder: str) -> str:
    """The nearest folder around that a project begins in; "" where there is none."""
    return next((str(f) for f in (Path(folder), *Path(folder).parents) if any((f / r).exists() for r in ROOTED)), "")


@lru_cache(maxsize=8)
def of_project(root: str) -> frozenset[bytes]:
    """The functions and methods of a project that are compiled whole: `f`, `Class.method`."""
    if not root or "site-packages" in Path(root).parts:
        return frozenset()
    found: set[bytes] = set()
    codes: list[bytes] = []
    for number, path in enumerate(_files(root)):
        if number >= MOST:
            break
        try:
            code = regular(path)
        except OSError:
            continue
        if len(code) <= LARGEST and b"torch" in code:
            codes.append(code)
            if (b"jit" in code or b"script" in code or b"fullgraph" in code) and MENTION.search(code):
                found |= given(code)
    return followed(frozenset(found), index(codes)) if found else frozenset()


def _files(root: str) -> Iterable[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in NEVER and not f.startswith("."))
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".py"))


def given(code: bytes) -> frozenset[bytes]:
    """What a file hands to such a compiler, or decorates so: also what a name was made by, `conv = GCNConv()`."""
    handed = {name.rpartition(b".")[2] for pattern in (GIVEN, GIVEN_WHOLE) for name in pattern.findall(code)} - {b""}
    made = {made.rpartition(b".")[2] for name, made in BOUND.findall(code) if name in handed} if handed else set()
    return frozenset({*DECORATED.findall(code), *handed, *made})


def index(codes: Iterable[bytes]) -> dict[bytes, list[Definition]]:
    """What these files define, by name: `f`, `Class`, `Class.method`."""
    found: dict[bytes, list[Definition]] = {}
    for code in codes:
        around: list[tuple[int, bytes]] = []  # indentation and name of the classes around
        every = list(DEFINED.finditer(b"\n" + code))
        for number, match in enumerate(every):
            indent, kind, name, bases = match.groups()
            while around and around[-1][0] >= len(indent):
                around.pop()
            cls = around[-1][1] if around else b""
            end = next((m.start() for m in every[number + 1 :] if len(m[1]) <= len(indent)), len(code))
            parents = tuple(b.strip().rpartition(b".")[2] for b in (bases or b"").split(b","))
            made = Definition(cls, kind == b"class", parents, code[match.end() : end])
            found.setdefault(b"%s.%s" % (cls, name) if cls else name, []).append(made)
            if made.is_class:
                around.append((len(indent), name))
    return found


def followed(known: frozenset[bytes], defined: dict[bytes, list[Definition]]) -> frozenset[bytes]:
    """These names, and those of what they call: a class stands for its `forward`, and for the layers that it makes."""
    found, todo = set(known), list(known)
    while todo:
        name = todo.pop()
        new: set[bytes] = set()
        for one in defined.get(name, ()):
            if one.is_class:
                new |= {b"%s.forward" % name, b"%s.__init__" % name, *one.bases}
            else:
                layers = name.endswith(b".__init__")  # of what is called there, only classes are compiled
                for own, callee in one.calls():
                    if not layers or callee[:1].isupper():
                        new.add(b"%s.%s" % (one.cls, callee) if own else callee)
        new = {n for n in new - found if n in defined}
        todo += new
        found |= new
    return frozenset(found)
