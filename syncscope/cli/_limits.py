"""Limits that a command was given: what is said of each, and the exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from syncscope.cli._console import complain, echo
from syncscope.cli._number import FiniteNumber
from syncscope.cli._share import Share
from syncscope.errors import UserError

if TYPE_CHECKING:
    from syncscope.model.report import Limit


def number(*names: str, when: str) -> Callable[[Any], Any]:
    """The option of a limit that is a number: exit 1 `when` it is broken."""
    return click.option(*names, type=FiniteNumber(min=0), metavar="N", help=f"Exit 1 when {when}.")


def share(*names: str, when: str, most: float = 100.0) -> Callable[[Any], Any]:
    """The option of a limit in percent of a step, itself at most so many: a part of it has no more than 100."""
    return click.option(*names, type=Share(most), help=f"Exit 1 when {when}.")


@dataclass(frozen=True, slots=True)
class GivenLimit:
    """A limit as it was typed, the lines that say how it is `broken`, and why it cannot be judged: the reason alone.

    `aside` says what it does not count, though it is there, `figure` what was found of one that holds. `of` begins what is
    said of one job among several, and `at` is the recording that it is about, of a job's limit that is of one rank.
    """

    option: str
    broken: tuple[str, ...] = ()
    unjudged: UserError | None = None
    aside: str = ""
    of: str = ""
    figure: str = ""
    at: str = ""

    @property
    def name(self) -> str:
        """What it is called, without its figure."""
        return self.option.split()[0].removeprefix("--")

    @property
    def holds(self) -> str:
        """That it holds, with what was found; "" where it does not, or nothing was found to be said."""
        return f"{self.of}{self.option} holds: {self.figure}" if self.held and self.figure else ""

    @property
    def held(self) -> bool | None:
        """Whether it holds; None where nobody can say."""
        return None if self.unjudged is not None else not self.broken

    @property
    def shown(self) -> Limit:
        """The same for formats that show what holds, too."""
        from syncscope.model.report import Limit

        return Limit(self.name, self.held, self.words, self.of.removesuffix(": "))

    @property
    def error(self) -> UserError | None:
        """Why it cannot be judged, with its name."""
        if self.unjudged is None:
            return None
        return UserError(f"{self.of}{self.option} cannot be judged: {self.unjudged.message}", self.unjudged.hint)

    @property
    def words(self) -> str:
        """What does not hold, as one sentence, or what was found of one that holds; and what it does not count."""
        if self.error is not None:
            said = f"{self.error.message.rstrip('.')}; {self.error.hint}"
        else:
            first, *rest = self.broken or (self.figure,)
            more = "; ".join(line.strip() for line in rest)
            said = f"{first}{' ' if first.endswith(':') else '; '}{more}" if rest else first
        return "; ".join(filter(None, (said, self.aside)))

    @property
    def told(self) -> str:
        """The same, with which of several it is of."""
        return self.words if self.error is not None else self.of + self.words


def judged(option: str, broken: Callable[[], Iterable[str]], figure: Callable[[], str] = str) -> GivenLimit:
    """What became of a limit, by the lines that say how it is broken, or by the `figure` of one that holds; a `UserError` in
    their place is why nobody can judge."""
    try:
        lines = tuple(broken())
        return GivenLimit(option, lines, figure="" if lines else figure())
    except UserError as error:
        return GivenLimit(option, unjudged=error)


def code(limits: Iterable[GivenLimit]) -> int:
    """Say on standard error what does not hold: 1 where one is broken, whatever cannot be judged; else 2 where one cannot."""
    broken = unjudged = False
    for limit in limits:
        for number, line in enumerate(limit.broken):
            echo(line if number else limit.of + line, err=True)
        if limit.holds:
            echo(limit.holds, err=True)
        if limit.aside:
            echo(limit.of + limit.aside, err=True)
        if limit.error is not None:
            complain(limit.error)
        broken |= limit.held is False
        unjudged |= limit.held is None
    return 1 if broken else 2 if unjudged else 0
