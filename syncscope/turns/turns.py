"""How long steps took in each block of each turn, and none of it further off than what is usual there.

A pause of the machine lengthens one block of a turn, and a mean of ratios with it. What is cut off must fall on all versions
alike: of a ratio to the mean of two blocks as written, each of which may have had the pause, it would not, and the rewritten
version would seem faster. So each block is looked at by itself, beside the middle of its turn.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from statistics import fmean, median
from typing import Generic, TypeVar

from syncscope.turns.sequential import FAR, FIRM, SPREAD

Version = TypeVar("Version", bound=Hashable)


class Turns(Generic[Version]):
    """Turns. `same` are the versions that are equal, `same[0]` as written, and what the others are held against.

    What a block may be off by is told by the turns before it alone, so that none decides on its own weight, and found anew
    whenever there are twice as many.
    """

    def __init__(self, same: tuple[Version, Version]) -> None:
        self.same = same
        self.turns: list[dict[Version, float]] = []  # as they were told
        self._logs: list[dict[Version, float]] = []
        self._kept: list[dict[Version, float]] = []  # the same, with what is far off cut
        self._effects: dict[Version, float] = {}  # logarithms of the ratios to as written, roughly
        self._off = math.inf
        self._renewed = FIRM

    def __len__(self) -> int:
        return len(self.turns)

    def add(self, times: Mapping[Version, float]) -> None:
        """A turn: what a step of each version took in it."""
        if len(self.turns) == self._renewed:
            self._learn()
            self._renewed *= 2
        logs = {version: math.log(time) for version, time in times.items()}
        self.turns.append(dict(times))
        self._logs.append(logs)
        self._kept.append({**logs, **self._cut(logs)})

    def ratios(self, chosen: Version, beside: Version | None = None, since: int = 0) -> list[float]:
        """Logarithms of the steps of a version over those of another, of the turns since then that have both.

        Without another: over as written, as both such blocks of a turn say.
        """
        found = []
        for turn in self._kept[since:]:
            base = self._as_written(turn, chosen) if beside is None else turn.get(beside)
            if chosen in turn and base is not None:
                found.append(turn[chosen] - base)
        return found

    def pairs(self, chosen: Version, beside: Version, since: int = 0) -> list[tuple[float, float]]:
        """The steps of two versions (beside, chosen) as they were told. As written is the mean of both such blocks."""
        both = [turn for turn in self.turns[since:] if chosen in turn and beside in turn]

        def of(turn: Mapping[Version, float]) -> float:
            known = [turn[version] for version in self.same if version in turn and version != chosen]
            return float(math.prod(known) ** (1 / len(known))) if beside == self.same[0] else turn[beside]

        return [(of(turn), turn[chosen]) for turn in both]

    def _as_written(self, turn: Mapping[Version, float], chosen: Version) -> float | None:
        known = [turn[version] for version in self.same if version in turn and version != chosen]
        return fmean(known) if self.same[0] in turn and known else None

    def _learn(self) -> None:
        effects: dict[Version, float] = dict.fromkeys(self.same, 0.0)
        for version in {version for turn in self._logs for version in turn}.difference(self.same):
            beside = [
                turn[version] - base
                for turn in self._logs
                if version in turn and (base := self._as_written(turn, version)) is not None
            ]
            if len(beside) >= FIRM:
                effects[version] = median(beside)
        self._effects = effects
        rests = [abs(rest) for turn in self._logs for rest in self._rests(turn)[1].values() if rest]
        self._off = FAR * SPREAD * median(rests) if rests else math.inf

    def _rests(self, turn: Mapping[Version, float]) -> tuple[float, dict[Version, float]]:
        """The middle of a turn, as if all versions were equal, and how far from it each block is that may be judged."""
        rests = {version: log - self._effects[version] for version, log in turn.items() if version in self._effects}
        middle = median(rests.values()) if rests else 0.0
        return middle, {version: rest - middle for version, rest in rests.items()}

    def _cut(self, turn: Mapping[Version, float]) -> dict[Version, float]:
        middle, rests = self._rests(turn)
        off = self._off
        return {version: self._effects[version] + middle + min(max(rest, -off), off) for version, rest in rests.items()}
