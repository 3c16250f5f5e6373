"""What fixes were found to do where they were tried, a row for each: what `trace.try_fixes()` gives back."""

from __future__ import annotations

from dataclasses import dataclass

from syncscope.model.answer import Decision
from syncscope.model.source import Place


@dataclass(frozen=True, slots=True)
class FixTried:
    """One fix. `ratio` is the step with it over the step as written, which lies between `low` and `high`; None where it was not
    timed. `values` is "equal", "within" or "changed"; None where they were not compared. `why` is a sentence.
    """

    place: Place
    rule: str
    title: str
    safety: str
    decision: Decision
    ratio: float | None
    low: float | None
    high: float | None
    values: str | None
    why: str


@dataclass(frozen=True, slots=True)
class FixesTried:
    """All of a program's lines. `ratio` is of all good ones together, where these were timed; `steps` were made again and again
    for `seconds`. `notes` say what was not tried, and why.
    """

    fixes: tuple[FixTried, ...] = ()
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    steps: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
