"""What is said on standard error of many recordings: the same of several once, and how many limits hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from syncscope.cli._console import complain, echo
from syncscope.cli._limits import GivenLimit
from syncscope.errors import UserError
from syncscope.model.words import visible

NAMED = 3  # of the recordings that one thing is said of


class SaidOfMany:
    """Keeps it until all is known."""

    def __init__(self) -> None:
        self._told: dict[str, list[str]] = {}
        self._errors: dict[tuple[str, str], list[str]] = {}
        self._notes: list[str] = []
        self._lines: list[str] = []
        self._held = Counter[bool | None]()

    def told(self, path: str, words: str) -> None:
        """Something to know of this recording; nothing where there are no words."""
        if words:
            self._told.setdefault(words, []).append(path)

    def note(self, words: str) -> None:
        """Something to know of a limit that holds."""
        self._notes.append(words)

    def error(self, path: str, error: UserError) -> None:
        """What is wrong with this recording."""
        self._errors.setdefault((error.message, error.hint), []).append("" if error.tells_of(path) else path)

    def unread(self, path: str, error: UserError, limits: int) -> None:
        """Why nothing can be said of this recording, nor of so many limits that it was to be held to."""
        self.error(path, error)
        self._held[None] += limits

    def limits(self, path: str, given: Iterable[GivenLimit]) -> None:
        """What became of its limits; those of one among several name it."""
        for limit in given:
            self._notes += [limit.holds] * bool(limit.holds)
            self._held[limit.held] += 1
            self._lines += [line if number else limit.of + line for number, line in enumerate(limit.broken)]
            self._lines += [limit.of + limit.aside] * bool(limit.aside)
            if limit.unjudged is not None:
                why, hint = limit.unjudged.message, limit.unjudged.hint
                self.error(path, UserError(f"{limit.option} cannot be judged: {why}", hint))

    @property
    def code(self) -> int:
        """The exit code."""
        return 1 if self._held[False] else 2 if self._errors else 0

    def end(self) -> None:
        """Say all of it."""
        for words, paths in self._told.items():
            echo(f"{_named(paths)}: {words}", err=True)
        for (message, hint), paths in self._errors.items():
            named = [path for path in paths if path]
            complain(UserError(f"{_named(named)}: {message}" if named else message, hint))
        for line in (*self._notes, *self._lines):
            echo(line, err=True)
        if self._held.total() > 2:
            told = {False: "broken", None: "not judged", True: "held"}
            said = ", ".join(f"{self._held[held]} {word}" for held, word in told.items() if self._held[held])
            echo(f"limits: {said}", err=True)


def _named(paths: list[str]) -> str:
    named = ", ".join(map(visible, paths[:NAMED]))
    return f"{named} and {len(paths) - NAMED} more" if len(paths) > NAMED + 1 else ", ".join(map(visible, paths))
