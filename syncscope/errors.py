"""The one error a user should ever meet."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


class UserError(Exception):
    """Something the user can mend: what happened, and what to do about it.

    The command line prints it as two lines and exits with 2. Anything else that escapes is our bug and keeps its traceback.
    `names` is the file that the message names by itself, if there is one.
    """

    def __init__(self, message: str, hint: str = "", names: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.names = names

    def __str__(self) -> str:
        return f"{self.message}\n hint: {self.hint}" if self.hint else self.message

    def tells_of(self, path: str) -> bool:
        """Whether the message names this file, or one below this folder."""
        return self.names == path or self.names.startswith(os.path.join(path, ""))


@contextmanager
def naming(path: str) -> Iterator[None]:
    """What is raised inside names this file, if it names none."""
    try:
        yield
    except UserError as error:
        error.names = error.names or path
        raise


def in_words(error: BaseException) -> str:
    """What happened, in one line: what we say on purpose, else the error's type and text."""
    if isinstance(error, UserError):
        return " ".join(error.message.split())
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
