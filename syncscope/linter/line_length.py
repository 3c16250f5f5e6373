"""How long a line of a project may be, as the tools that look after that are configured: ruff, black, flake8, an editor."""

from __future__ import annotations

import configparser
import os
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from syncscope.files import regular

LARGEST = 1 << 20  # bytes of a configuration
USUAL = {"ruff": 88, "black": 88, "flake8": 79, "pycodestyle": 79}  # where a tool is configured, and its length is not
INI = ("setup.cfg", ".flake8", "tox.ini", ".editorconfig")


def line_length(path: str) -> int | None:
    """The longest line of a file that no tool of its project complains of, by the nearest folder that says so; None where none
    is configured."""
    folder = os.path.dirname(os.path.abspath(path))
    while True:
        if found := [*_said_in(folder)]:
            return min(found)
        above = os.path.dirname(folder)
        if above == folder or os.path.exists(os.path.join(folder, ".git")):
            return None
        folder = above


def _said_in(folder: str) -> Iterator[int]:
    tools: dict[str, Any] = {}
    for name in ("ruff.toml", ".ruff.toml"):
        if (table := _toml(os.path.join(folder, name))) is not None:
            tools["ruff"] = table
    known = _toml(os.path.join(folder, "pyproject.toml")) or {}
    configured = known.get("tool")
    if isinstance(configured, Mapping):
        tools |= {name: configured[name] for name in ("ruff", "black", "flake8", "pycodestyle") if name in configured}
    for name, table in tools.items():
        if isinstance(table, Mapping):
            yield _number(table.get("line-length", table.get("max-line-length"))) or USUAL[name]
    for name in INI:
        yield from _ini(os.path.join(folder, name))


def _toml(path: str) -> dict[str, Any] | None:
    text = _text(path)
    try:
        return None if text is None else tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _ini(path: str) -> Iterator[int]:
    text = _text(path)
    if text is None:
        return
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text if not path.endswith(".editorconfig") else f"[top]\n{text}")
    except configparser.Error:
        return
    for section in parser.sections():
        said = next((parser[section][k] for k in ("max-line-length", "max_line_length") if k in parser[section]), None)
        if section in ("flake8", "pycodestyle"):
            yield _number(said) or USUAL[section]
        elif section in ("*", "*.py", "*.{py,pyi}") and (number := _number(said)):
            yield number


def _text(path: str) -> str | None:
    try:
        raw = regular(path)
    except (OSError, ValueError):
        return None
    return raw.decode("utf-8", "replace") if len(raw) <= LARGEST else None


def _number(value: object) -> int | None:
    text = str(value)
    return int(text) if text.isdigit() and 0 < int(text) < 10_000 else None
