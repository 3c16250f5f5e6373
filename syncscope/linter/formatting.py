"""How long a project's lines may be, as its own formatter or linter is told."""

from __future__ import annotations

import configparser
import os
import re
from functools import cache
from typing import Any

from syncscope.files import regular

LARGEST = 1 << 20  # bytes of a settings file
STATED = re.compile(
    rb"^\s*[\"']?(?:line[-_]length|max[-_]line[-_]length|column_limit)[\"']?\s*=", re.MULTILINE | re.IGNORECASE
)
KEYS = ("line-length", "line_length", "max-line-length", "max_line_length", "column_limit")
TOOLS = ("ruff", "black", "yapf", "flake8", "pycodestyle")


@cache
def width(folder: str) -> int:
    """The line length that the settings in this folder, or in the nearest one around it that says any, allow; 0: none do."""
    for name in ("ruff.toml", ".ruff.toml", "pyproject.toml", "setup.cfg", ".flake8", "tox.ini", ".editorconfig"):
        try:
            raw = regular(os.path.join(folder, name), LARGEST)
        except OSError:
            continue
        read = _toml if name.endswith("toml") else _editorconfig if name == ".editorconfig" else _ini
        if STATED.search(raw) and 40 <= (found := read(raw)) <= 400:
            return found
    parent = os.path.dirname(folder)
    return width(parent) if parent != folder else 0


def _toml(raw: bytes) -> int:
    import tomllib

    try:
        table: Any = tomllib.loads(raw.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        return 0
    tools = table.get("tool") if isinstance(table.get("tool"), dict) else {}
    said = [table, *(tools[t] for t in TOOLS if isinstance(tools.get(t), dict))]
    # a linter may allow for more
    return min((s[k] for s in said for k in KEYS if isinstance(s.get(k), int)), default=0)


def _ini(raw: bytes) -> int:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(raw.decode())
        return next((parser.getint(t, k) for t in TOOLS for k in KEYS if parser.has_option(t, k)), 0)
    except (configparser.Error, ValueError):
        return 0


def _editorconfig(raw: bytes) -> int:
    """Of https://editorconfig.org: the last section that is for files of Python, or for all."""
    found, own = 0, False
    for line in raw.decode("utf-8", "replace").splitlines():
        if section := re.fullmatch(r"\s*\[(.*)\]\s*", line):
            own = _for_python(section[1])
        elif own and (said := re.fullmatch(r"\s*max_line_length\s*=\s*(\w+)\s*", line, re.IGNORECASE)):
            found = int(said[1]) if said[1].isdigit() else 0  # `off`: as long as it likes
    return found


def _for_python(pattern: str) -> bool:
    """Whether a section of an .editorconfig is for every file of Python: `*`, `*.py`, `*.{py,pyi}`, `{*.py,*.md}`."""
    name, _, choices = pattern.rpartition("/")[2].strip("{}").partition("{")
    return name in ("*", "**") or "py" in f"{name}{choices}".replace("*.", "").split(",")
