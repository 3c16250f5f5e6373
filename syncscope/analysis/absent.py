"""Which ranks of a job are not here, by what the recordings say of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from syncscope.analysis.rank import Rank

NAMED = 8  # ranks


@dataclass(frozen=True, slots=True)
class Absent:
    """A job of `world` ranks, as far as any recording says; `here` are so many, and `numbers` those that are not, where the
    recordings say which they are of."""

    world: int
    here: int
    numbers: tuple[int, ...] = ()

    @property
    def known(self) -> bool:
        """Whether ranks are known to be missing."""
        return self.here < self.world

    @property
    def named(self) -> str:
        """Their numbers, of many the first; "" where nobody knows them."""
        more = len(self.numbers) - NAMED
        return ", ".join(map(str, self.numbers[:NAMED])) + (f" and {more:,} more" if more > 0 else "")

    @property
    def told(self) -> str:
        """What their absence means for what is said of the others; "" where none is missing."""
        if not self.known:
            return ""
        count = self.world - self.here
        missing = f"{count:,} of {self.world:,} ranks {'is' if count == 1 else 'are'} missing"
        which = f" ({'rank' if count == 1 else 'ranks'} {self.named})" if self.numbers else ""
        whom = "it" if count == 1 else "them"
        return f"{missing}{which}: who waited for {whom} is told as waiting for another rank, or for none."


def absent(ranks: Sequence[Rank], expect: int | None = None) -> Absent:
    """Those that are not among these, of as many as the recordings say, or as are expected."""
    return absent_of([rank.number for rank in ranks], max((rank.world for rank in ranks), default=0), expect)


def absent_of(here: Collection[int], world: int, expect: int | None = None) -> Absent:
    """Those of a job of `world` ranks, as far as is known, that are not among these numbers; -1 is of one that has none."""
    world = expect or world
    asked = len(here) < world and expect is None and min(here) >= 0
    return Absent(world, len(here), tuple(sorted(set(range(world)).difference(here))) if asked else ())
