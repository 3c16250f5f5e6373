"""What to do about waits, in one of four words, with the figure that it rests on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Decision(StrEnum):
    """What to do. `analysis.answer` has the rule."""

    FIX = "fix"
    TRY = "try"  # measure it: what it saves is not sure
    LEAVE = "leave"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Answer:
    """What to do about all waits, or about those of a line. `share` is the likely saving, `low` and `high` between what it lies
    in four of five recordings like this one, `bound` what no fix can pass, all as parts of a step; None where it is not known.

    `measured` is the number of recordings, and `loops` that of the loops, from which the interval comes; 0 where it comes from
    the recording alone. `why` is a sentence: what decided, and for `TRY` and `UNKNOWN` what to do about it. `along` says in
    words what goes with the waits beyond what they launched; `offered` is what the linter's rewrites save of the share, and
    `most` what may go at most with what is `along`. `doubt` is why it is no `FIX` although its interval is that of one.
    What was `tried` is no forecast: it was measured with the rewrites that stay, in 95 of 100 cases between `low` and `high`.
    """

    decision: Decision
    share: float | None = None
    low: float | None = None
    high: float | None = None
    bound: float | None = None
    measured: int = 0
    loops: int = 0
    why: str = ""
    along: str = ""
    offered: float | None = None
    most: float | None = None
    doubt: str = ""
    tried: bool = False

    @property
    def figure(self) -> str:
        """`29 % (24 to 36 %; 4 in 5 of 214 loops that were fixed and timed came out in this range)`; "" without one."""
        return self.told("")

    def told(self, word: str) -> str:
        """The same with the word that the figure belongs to before its interval: `29 % shorter (24 to 36 %; ...)`."""
        return self._said(word, self.source)

    @property
    def source(self) -> str:
        """Where the interval comes from: the loops that were measured; "" where from the recording alone."""
        return (
            f"4 in 5 of {self.loops} loops that were fixed and timed came out in this range"
            if self.loops and self.low is not None
            else ""
        )

    def likely(self, word: str) -> str:
        """The figure and its interval alone: `29 % shorter (24 to 36 %)`."""
        return self._said(word, "")

    def _said(self, word: str, source: str) -> str:
        if self.share is None:
            return ""
        likely = f"{_percent(self.share)} {word}".rstrip()
        if likely.startswith("-") and word == "shorter":
            likely = f"{_percent(-self.share)} longer"
        if self.low is None or self.high is None:
            return likely
        within = between(self.low, self.high, _percent)
        return f"{likely} ({within}; {source})" if source else f"{likely} ({within})"


def between(low: float, high: float, figure: Callable[[float], str]) -> str:
    """What a saving lies between: `24 to 36 %`, and where it may be none `2 % longer to 36 % shorter`, which a step then is.
    `figure` is a number with its unit behind a space."""
    least, most = figure(low), figure(high)
    if not least.startswith("-"):
        number, _, unit = least.rpartition(" ")
        return f"{number if number == '0' or most.endswith(f' {unit}') else least} to {most}"
    if most.startswith("-"):
        return f"{between(-high, -low, figure)} longer"
    return f"{figure(-low)} longer to {most} shorter"


def _percent(share: float) -> str:
    """Two digits, and never more than a tenth of a percent: `29 %`, `2.4 %`."""
    rounded = 100 * share
    text = f"{rounded:.0f}" if abs(rounded) >= 9.95 else f"{rounded:.1f}"
    return f"{'0' if text in ('0.0', '-0.0') else text} %"
