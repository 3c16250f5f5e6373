"""The one error a user should ever meet."""

from __future__ import annotations


class UserError(Exception):
    """Something the user can mend: what happened, and what to do about it.

    The command line prints it as two lines and exits with 2. Anything else that escapes is our bug and keeps its traceback.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n hint: {self.hint}" if self.hint else self.message


def in_words(error: BaseException) -> str:
    """What happened, in one line: what we say on purpose, else the error's type and text."""
    if isinstance(error, UserError):
        return " ".join(error.message.split())
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
