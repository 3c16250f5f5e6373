"""The functions that a program names, declared: clang reads the 14,000 of OpenCL C before every program otherwise, and that is
nine tenths of what PoCL's wheel takes to build a small one.

They are the wheel's own declarations, under its own `#if`s; the guard of its header keeps clang from reading the whole of it.
An `#if` with nothing in it goes, too: there are six hundred, and clang takes a quarter of a small program's time for them.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata
from pathlib import Path

GUARD = "_OPENCL_H_"  # defined: clang has read the header
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_DECLARATION = re.compile(r"^[a-z_][^#;{}(]*\b(\w+)\([^#;]*;\n", re.MULTILINE)
_CONDITION = re.compile(r"^(#if(?:[^\n]*\\\n)*[^\n]*\n|#endif[^\n]*\n)", re.MULTILINE)


def path(wheel: str) -> Path | None:
    """Where a wheel of PoCL has its header."""
    files = metadata.distribution(wheel).files or ()
    return next((Path(str(file.locate())) for file in files if file.name == "opencl-c.h"), None)


@cache
def _pieces(header: Path) -> list[tuple[str, str]]:
    """The header's text in order: neighbouring declarations of a function with its name, and with "" each `#if`, each `#endif`,
    and what stands between."""
    text = _COMMENT.sub("", header.read_text(encoding="utf-8"))
    text = f"#undef {GUARD}\n" + text.replace('#include "opencl-c-base.h"\n', "")  # the types are known by then
    found, at = list[tuple[str, str]](), 0
    for declaration in _DECLARATION.finditer(text):
        found += _between(text[at : declaration.start()])
        name, declared = declaration[1], declaration[0]
        if found and found[-1][0] == name:
            declared = found.pop()[1] + declared
        found.append((name, declared))
        at = declaration.end()
    return [*found, *_between(text[at:])]


def _between(text: str) -> list[tuple[str, str]]:
    return [("", piece.lstrip()) for piece in _CONDITION.split(text) if piece.strip()]


def declarations(header: Path, source: str) -> str:
    """The header without the functions that a source does not name."""
    words = set(re.findall(r"\w+", source))
    kept: list[str] = []
    opened: list[int] = []  # where in it each `#if` is that has not ended
    for name, text in _pieces(header):
        if name and name not in words:
            continue
        if text.startswith("#endif"):
            start = opened.pop()
            if start == len(kept) - 1:
                kept.pop()
                continue
        elif text.startswith("#if"):
            opened.append(len(kept))
        kept.append(text)
    return "".join(kept)
