"""Where the time of a step goes: the device works, or it stands still, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

APART = 0.3  # the part of a step from which the exchange with other ranks is worth a word


class Use(StrEnum):
    """What a moment of a step goes to; as a string it is its name, `words` say it, `is_idle` that the device stands still."""

    words: str
    is_idle: bool

    def __new__(cls, name: str, is_idle: bool, words: str) -> Use:
        use = str.__new__(cls, name)
        use._value_ = name
        use.is_idle = is_idle
        use.words = words
        return use

    COMPUTE = "compute", False, "the device computes"
    COPY = "copy", False, "the device only copies"
    COLLECTIVE = "collective", False, "the device only exchanges with other ranks, or waits for them"
    WAIT = "wait", True, "idle: the host had waited"
    LOADER = "loader", True, "idle: the host loads data"
    LAUNCH = "launch", True, "idle: the host launches work"
    HOST = "host", True, "idle: other work of the host"
    QUEUE = "queue", True, "idle: between work that was enqueued already"
    UNEXPLAINED = "unexplained", True, "idle: nothing that was recorded says why"


class Nameless(StrEnum):
    """What idle times are put to that nothing recorded has a name for, as its value in words."""

    UNSEEN = "what was not recorded"
    EARLIER = "work that was enqueued before the recording"
    PAUSES = "in many short pauses"


@dataclass(frozen=True, slots=True)
class Spent:
    """How long a use takes, ns per step, and what is behind it by name (a line, a function, a call), the longest first."""

    use: Use
    time: float
    by: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class StepUses:
    """Where the counted steps go: `spent` adds up to `step` (ns), `steps` has the ns of each use, in the order of `Use`, for
    every step of the recording; `words` is what follows from it. For the part `warming` of it the program loads kernels or asks
    the driver for memory, as at first use.
    """

    step: float
    spent: tuple[Spent, ...]
    steps: tuple[tuple[int, ...], ...]
    words: str
    warming: float = 0.0

    @property
    def earlier(self) -> float:
        """The ns of a step that were idle for work that was enqueued before the recording, and is not in it."""
        return sum(ns for one in self.spent if one.use.is_idle for name, ns in one.by if name == Nameless.EARLIER)

    @property
    def exchange(self) -> float:
        """The ns of a step in which the device only exchanges with other ranks or waits for them, where that is what holds it
        up: more than it is idle, and much; else 0."""
        return exchange(self.step, self.spent)


def exchange(step: float, spent: Sequence[Spent]) -> float:
    """The same of what is spent in a step."""
    idle = sum(one.time for one in spent if one.use.is_idle)
    alone = sum(one.time for one in spent if one.use is Use.COLLECTIVE)
    return alone if alone > max(idle, APART * step) else 0.0
