"""Where a command prints for people."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from syncscope.errors import UserError

WIDTH = 100  # columns where the output is no terminal
WIDEST = 140  # wider lines are hard to follow


def console(stderr: bool = False) -> Console:
    """A console as wide as the terminal is, within reason; `COLUMNS` is obeyed where there is no terminal."""
    from rich.console import Console

    class Ours(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would exit with 1

    made = Ours(stderr=stderr, highlight=False)
    made.width = min(made.width, WIDEST) if made.is_terminal or "COLUMNS" in os.environ else WIDTH
    return made


def plain() -> bool:
    """Whether the user or the terminal wants no colours; https://no-color.org."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def rewrites(stream: Any) -> bool:
    """Whether a line there can be written over."""
    return bool(stream.isatty()) and os.environ.get("TERM") != "dumb"


def paints(stream: Any) -> bool:
    """Whether to use colours there."""
    return not plain() and (bool(os.environ.get("FORCE_COLOR")) or bool(stream.isatty()))


def complain(error: UserError) -> None:
    """An error in two lines: what happened, and what to do."""
    color = paints(sys.stderr)
    click.echo(f"{click.style('error', fg='red', bold=True)}: {error.message}", err=True, color=color)
    if error.hint:
        click.echo(f"{click.style(' hint', fg='cyan')}: {error.hint}", err=True, color=color)
