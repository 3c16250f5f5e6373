"""What a project asks for that it could leave alone: values of parameters that have one already.

Told by its texts, of Python and of its configurations, as nothing of it runs: a name stands for every parameter of that name.
What a value is handed on as, `alpha=alpha`, `alpha=args.alpha`, says nothing; where it comes from does.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from syncscope.project.beside_training import TEST_FILE
from syncscope.project.folders import MOST_SOURCES, content, located, of_texts, pages, project_around, sources

_LEFT = re.compile(rb"""^["']?(?:none|null|~|)["']?$""", re.IGNORECASE)  # what a configuration calls None
_FALSE = re.compile(rb"""^["']?(?:false|no|off)["']?$""", re.IGNORECASE)
_TRUE = re.compile(rb"""^["']?(?:true|yes|on)["']?$""", re.IGNORECASE)
_FAR = 600  # characters of a call that are gone through for its arguments
_BY_NAME = frozenset(("forward", "__call__"))  # functions that are called by what their object is called


OPTION = "--"
"""What an option of a command line is called by, in the place of a function."""


class Parameter(NamedTuple):
    """A parameter of a function, `called` by the function's name or by that of the class it makes, with what it is where
    nobody gives it, as it is written; of one that is given by name alone the `position` is -1."""

    name: str
    default: str
    called: str
    position: int

    @property
    def key(self) -> str:
        """The same as a text."""
        return "|".join((self.name, self.called, str(self.position), self.default))

    @classmethod
    def of(cls, key: str) -> Parameter:
        """What `key` made a text of."""
        name, called, position, default = key.split("|", 3)
        return cls(name, default, called, int(position))


def is_given(path: str, key: str) -> bool:
    """Whether anything in the project around a file gives a parameter another value than it has anyway, or may do so."""
    path = located(path)
    return _is_given(project_around(path), path, key) if os.path.isfile(path) else True


def _texts(root: str, path: str) -> Iterator[bytes]:
    """The project's files of Python, or the file itself where that is in none; those of tests ask for everything once."""
    own = (path,) if path in (sources(root) or (path,)) else ()
    yield from map(content, (*own, *(each for each in _untested(root) if each != path)))


@of_texts
def _untested(root: str) -> tuple[str, ...]:
    """The project's files but for those of tests: asked for each parameter."""
    return tuple(
        each
        for each in sources(root)
        if not {"test", "tests"} & {*os.path.dirname(os.path.relpath(each, root)).split(os.sep)}
        if not TEST_FILE.search(Path(each).stem)
    )


@of_texts
def _is_given(root: str, path: str, key: str) -> bool:
    asked = _Asked(Parameter.of(key))
    if len(sources(root)) >= MOST_SOURCES:
        return True
    if asked.undeclared(_texts(root, path)):
        return True
    return any(map(asked.by, _texts(root, path))) or any(map(asked.by_setting, pages(root)))


class _Asked:
    """Looks for a parameter in texts."""

    def __init__(self, parameter: Parameter) -> None:
        self._parameter = parameter
        self._word = parameter.name.encode()
        name = re.escape(self._word)
        self._here = re.compile(rb"\b%b\b" % name)
        dashed = re.escape(self._word).replace(rb"\-", b"-").replace(b"_", b"[_-]")
        self._given = re.compile(
            rb"(?:[(,]\s*+(?:#[^\n]*+\s*+)*+%b\s*(?::[^=,()\n]*)?|\n[ \t]+%b\s*:[^=\n]*|\.%b\s*)=(?!=)\s*([^\n#]*)"
            % ((name,) * 3)
        )
        self._item = re.compile(rb"""["']%b["']\s*(?::|\]\s*=(?!=))\s*([^\n#]*)""" % name)
        self._asked_for = re.compile(rb"""(?:getattr|setattr|\.get|\.pop)\([^()"']*["']%b["']\s*,\s*([^\n#]*)""" % name)
        self._option = re.compile(rb"""["']--?%b["']((?:[^()]|\([^()]*\))*)\)""" % dashed)
        self._setting = re.compile(rb"""(?:^|[\s"'.,({-])%b["']?\s*[:=]\s*([^\n#,})]*)""" % dashed, re.MULTILINE)
        self._flag = re.compile(rb"--%b\b" % dashed)
        self._calls = None
        if parameter.position >= 0 and parameter.called != OPTION and parameter.called not in _BY_NAME:
            self._calls = re.compile(rb"(?<!def )(?<!class )\b%b\s*\(" % re.escape(parameter.called.encode()))

    def undeclared(self, texts: Iterable[bytes]) -> bool:
        """Whether it is an option that no command line has: then nothing is known of it."""
        return self._parameter.called == OPTION and not any(map(self._option.search, texts))

    def by(self, text: bytes) -> bool:
        """Whether a file of Python gives it another value."""
        if self._word in text and any(
            self._is_other(_first(match[1]))
            for each in (self._given, self._item, self._asked_for)
            for match in each.finditer(text)
        ):
            return True
        options = self._option.finditer(text) if b'"-' in text or b"'-" in text else ()  # most files have none
        if any(self._is_other(_of_option(match[1])) for match in options):
            return True
        if self._calls is None or self._parameter.called.encode() not in text:
            return False
        position = self._parameter.position
        for match in self._calls.finditer(text):
            args = _arguments(text[match.end() : match.end() + _FAR])
            if any(each.startswith(b"*") and not each.startswith(b"**") for each in args[: position + 1]):
                return True
            if (
                len(args) > position
                and not re.match(rb"\w+\s*=(?!=)", args[position])
                and self._is_other(args[position])
            ):
                return True
        return False

    def by_setting(self, text: bytes) -> bool:
        """Whether a file of settings does, a command in one, or an example on a page."""
        return self._flag.search(text) is not None or any(
            self._is_other(match[1].strip()) for match in self._setting.finditer(text)
        )

    def _is_other(self, value: bytes) -> bool:
        """Whether a value is not what the parameter is anyway: neither its default, nor what is handed on by its name."""
        value = value.strip().rstrip(b";")
        if self._here.search(value):
            return False
        default = self._parameter.default
        if default == "None":
            return _LEFT.match(value) is None
        if default in ("False", "True"):
            return (_FALSE if default == "False" else _TRUE).match(value) is None
        try:
            return bool(ast.literal_eval(value.decode()) != ast.literal_eval(default))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError, UnicodeDecodeError):
            return value != default.encode()


def _first(text: bytes) -> bytes:
    """The first of the arguments that a text begins with."""
    return next(iter(_arguments(text)), b"")


def _arguments(text: bytes) -> list[bytes]:
    """The arguments of a call behind whose bracket a text begins, as far as it goes."""
    found, depth, start, quote = list[bytes](), 0, 0, b""
    for at in range(len(text)):
        sign = text[at : at + 1]
        if quote:
            quote = b"" if sign == quote else quote
        elif sign in b"\"'":
            quote = sign
        elif sign in b"([{":
            depth += 1
        elif sign in b")]}":
            depth -= 1
            if depth < 0:
                text = text[:at]
                break
        elif sign == b"," and depth == 0:
            found.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*found, last] if last else found


def _of_option(said: bytes) -> bytes:
    """What an option of a command line is where nobody names it: `action="store_true"`, `type=int, default=3`."""
    default = re.search(rb"\bdefault\s*=\s*([^\n#]*)", said)
    if default is not None:
        return _first(default[1])
    return b"False" if b"store_true" in said or b"is_flag" in said else b"True" if b"store_false" in said else b"None"
