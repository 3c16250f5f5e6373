"""The functions that a program names, declared: clang reads the 14,000 of OpenCL C before every program otherwise, and that is
nine tenths of what PoCL's wheel takes to build a small one.

They are the wheel's own declarations, under its own `#if`s; the guard of its header keeps clang from reading the whole of it.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata
from pathlib import Path

GUARD = "_OPENCL_H_"  # defined: clang has read the header
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_DECLARATION = re.compile(r"^[a-z_][^#;{}(]*\b(\w+)\([^#;]*;\n", re.MULTILINE)


def path(wheel: str) -> Path | None:
    """Where a wheel of PoCL has its header."""
    files = metadata.distribution(wheel).files or ()
    return next((Path(str(file.locate())) for file in files if file.name == "opencl-c.h"), None)


@cache
def _pieces(header: Path) -> list[tuple[str, str]]:
    """The header's text in order: each declaration with the name of its function, and with "" what stands between two."""
    text = _COMMENT.sub("", header.read_text(encoding="utf-8"))
    text = f"#undef {GUARD}\n" + text.replace('#include "opencl-c-base.h"\n', "")  # the types are known by then
    found, at = [], 0
    for declaration in _DECLARATION.finditer(text):
        found += [("", text[at : declaration.start()].lstrip()), (declaration[1], declaration[0])]
        at = declaration.end()
    return [piece for piece in (*found, ("", text[at:])) if piece[1]]


def declarations(header: Path, source: str) -> str:
    """The header without the functions that a source does not name."""
    words = set(re.findall(r"\w+", source))
    return "".join(text for name, text in _pieces(header) if not name or name in words)
