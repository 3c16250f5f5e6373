"""Where a command prints for people."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 100  # columns where the output is no terminal
WIDEST = 140  # wider lines are hard to follow


def console(stderr: bool = False) -> Console:
    """A console as wide as the terminal is, within reason; `COLUMNS` is obeyed where there is no terminal."""
    from rich.console import Console

    made = Console(stderr=stderr, highlight=False)
    made.width = min(made.width, WIDEST) if made.is_terminal or "COLUMNS" in os.environ else WIDTH
    return made
