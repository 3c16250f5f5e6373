"""What the recorder has to say to a program that goes on: a line on standard error, whatever becomes of it."""

from __future__ import annotations

import contextlib
import sys

from syncscope.errors import UserError


def say(what: UserError) -> None:
    """Says it. No warning, for these can be made errors, and an error would end the program."""
    if sys.stderr is not None:
        hint = f" ({what.hint})" if what.hint else ""
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more, or it is closed
            print(f"syncscope: {what.message}{hint}", file=sys.stderr, flush=True)
