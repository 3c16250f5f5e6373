"""What would be if something of a step were otherwise: what that saves, and what to write for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from syncscope.model.durations import about_ms
from syncscope.model.source import Place

ELSEWHERE = "do it rarely, later, or elsewhere"
AS_GOOD = 0.5  # the part of what helps most that something easier must likely save, to come first


class Effort(IntEnum):
    """How much there is to write for a change."""

    WORD = 0  # an argument where something is made: `num_workers=4`, `fused=True`
    LINES = 1  # the lines themselves
    STEP = 2  # a whole step, which must be of fixed shape, or a loop in it


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A change of the recording that was replayed; times are ns per step.

    `saving` is what a step is likely shorter, between `low` and `high`, and by no more than `bound`, whatever takes its place.
    `lines` are those that it is about, the dearest first; `advice` is what to write, `rule` the linter's that offers it.
    `between` are the lines of the launches between which the host does what goes, where it is such work, and `spent` how long.
    Advice that only says where to `begin` is no whole sentence behind "do first".
    What is `answered` has the figure of the report's answer, which was measured of such recordings, whatever their replay.
    `word` is its name where there is room for one. `command` tries its rewrites, suggestions, too; "" where nothing can.
    What saves little is `unsure` where it may as well save nothing, and is no advice on what to do first.
    `loops` is of how many loops, changed for real, the interval was learned; 0 where it comes from elsewhere. What is `bought`
    needs another machine, and is no advice on what to do first. `effort` is how much there is to write.
    """

    name: str
    saving: float
    low: float
    high: float
    bound: float
    lines: tuple[Place, ...] = ()
    advice: str = ""
    rule: str = ""
    loops: int = 0
    bought: bool = False
    effort: Effort = Effort.LINES
    between: tuple[Place, Place] | None = None
    spent: float = 0.0
    begin: bool = False
    answered: bool = False
    unsure: bool = False
    word: str = ""
    command: str = ""

    @property
    def told(self) -> str:
        """The advice where nothing before it says that it comes first."""
        return f"first {self.advice}" if self.begin else self.advice

    @property
    def surely(self) -> str:
        """Whether a step *is* shorter then, or *may be*: where it only lies between two figures."""
        return "is" if self.low == self.saving == self.high else "may be"


def own_work(spent: float, where: str = "between two launches", runs: str = "", do: str = ELSEWHERE) -> str:
    """What to do about the host's own work: `4.9 ms between two launches, there line 5 runs: do it rarely, ...`."""
    return f"{about_ms(spent)} {where}{', ' * bool(runs)}{runs}: {do}"


def first_of(found: Sequence[WhatIf]) -> WhatIf | None:
    """What to do first: the easiest of those that cannot be told from what helps most, for their intervals reach as far."""
    able = [one for one in found if not one.bought and not one.unsure]
    most = max((one.saving for one in able), default=0.0)
    as_good = [one for one in able if one.high >= most and one.saving >= AS_GOOD * most]
    return min(as_good, key=lambda one: (one.effort, -one.saving), default=None)
