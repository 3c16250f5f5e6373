"""Where a command prints: the only door, and nothing that steers a terminal or a CI runner goes through it."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any

import click

from syncscope.model.words import visible

if TYPE_CHECKING:
    from rich.console import Console

    from syncscope.errors import UserError

WIDTH = 100  # columns where the output is no terminal
WIDEST = 140  # wider lines are hard to follow

COLOR = r"\x1b\[[0-9;]*m"
STEERS = re.compile(
    rf"({COLOR})|[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f]|\r(?!\n)|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
FILLED = re.compile(r" +$", re.MULTILINE)
COMMAND = re.compile(rf"^((?:[^\S\n]|{COLOR})*):(?=:[^\n]*::)|(?<=#)#(?=(?:vso|teamcity)?\[)", re.MULTILINE)
"""What runners obey: GitHub's where a line begins so (`::error ::`), those of Azure and TeamCity anywhere (`##[`, `##vso[`)."""


def console(stderr: bool = False) -> Console:
    """A console as wide as the terminal is, within reason; `COLUMNS` is obeyed where there is no terminal."""
    from syncscope.exporters._narrow import Narrow

    class Ours(Narrow):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would exit with 1

    stream: Any = Harmless(sys.stderr if stderr else sys.stdout)
    made = Ours(file=stream, highlight=False, markup=False, emoji=False)
    made.width = min(made.width, WIDEST) if made.is_terminal or "COLUMNS" in os.environ else WIDTH
    return made


def columns(stream: Any) -> int | None:
    """How wide a terminal there is; None where lines go elsewhere, as to `grep`, which is to find each whole."""
    from shutil import get_terminal_size

    return get_terminal_size().columns if stream.isatty() else None


def echo(
    text: str | bytes = "", *, nl: bool = True, err: bool = False, commands: bool = False, color: bool | None = None
) -> None:
    """Print it. Colours of our own are for terminals, or as `color` says; with `commands`, it is a CI runner that is spoken to.

    Names are `visible` long before; this is for what is not a name (a line of source, a diff), and for what was forgotten.
    """
    color = paints(sys.stderr if err else sys.stdout) if color is None else color
    click.echo(harmless(text, color, commands) if isinstance(text, str) else text, nl=nl, err=err, color=color)


def harmless(text: str, color: bool = False, commands: bool = False) -> str:
    """The lines with what would steer a terminal made visible, and so is the sign by which a CI runner would obey."""
    text = STEERS.sub(lambda m: m[0] if m[1] and color else visible(m[0]), text)
    # as JSON has it too
    return text if commands else COMMAND.sub(lambda m: rf"{m[1] or ''}\u{ord(m[0][-1]):04x}", text)


class Harmless:
    """A stream through which only what is `harmless` goes, and no blanks at the end of a line: tables are filled up."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write whole lines."""
        written: int = self.stream.write(FILLED.sub("", harmless(text, color=True)))
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def plain() -> bool:
    """Whether the user or the terminal wants no colours; https://no-color.org."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def rewrites(stream: Any) -> bool:
    """Whether a line there can be written over."""
    return bool(stream.isatty()) and os.environ.get("TERM") != "dumb"


def paints(stream: Any) -> bool:
    """Whether to use colours there."""
    return not plain() and (bool(os.environ.get("FORCE_COLOR")) or bool(stream.isatty()))


def painted(word: str, *, err: bool = False, **style: Any) -> str:
    """The word in a colour where colours are used."""
    return click.style(word, **style) if paints(sys.stderr if err else sys.stdout) else word


def complain(error: UserError) -> None:
    """An error in two lines: what happened, and what to do."""
    echo(f"{painted('error', err=True, fg='red', bold=True)}: {visible(error.message)}", err=True)
    if error.hint:
        echo(f"{painted(' hint', err=True, fg='cyan')}: {visible(error.hint)}", err=True)
